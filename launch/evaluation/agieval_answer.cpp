#include "launch/evaluation/agieval_answer.h"

#include "actors/roles/rules/published_math.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::evaluation {
namespace {

std::string after_equals(std::string text) {
  const auto at = text.rfind('=');
  if (at == std::string::npos) return text;
  text.erase(0, at + 1);
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

std::optional<std::string> last_match(const Regex& regex, const std::string& text) {
  const auto matches = regex.find_groups(text);
  if (!matches || matches->empty()) return std::nullopt;
  const auto& range = matches->back().back();
  return text.substr(range.begin, range.end - range.begin);
}

std::optional<std::string> boxed(const std::string& text) {
  constexpr std::string_view left = "\\boxed{";
  auto begin = text.rfind("\\boxed");
  int open = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text[at] == '{') ++open;
    if (text[at] != '}' || --open != 0) continue;
    if (text.compare(begin, left.size(), left) != 0) return std::nullopt;
    begin += left.size();
    return after_equals(text.substr(begin, at - begin));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> agieval_formula(const std::string& text) {
  if (text.find("\\boxed") != std::string::npos) return boxed(text);
  static const Regex dollars = value_or_throw(python_regex(R"(\$(.*)\$)", "agieval"));
  if (const auto found = last_match(dollars, text); found && !found->empty())
    if (std::string out = after_equals(*found); !out.empty()) return out;
  if (text.find('=') != std::string::npos) {
    std::string out = after_equals(text);
    while (out.ends_with('.')) out.pop_back();
    return out.substr(0, out.find("\\n"));
  }
  static const Regex number =
      value_or_throw(python_regex(R"((?:\$)?\d+(?:\.\d+)?(?![\w\d]))", "agieval"));
  return last_match(number, text);
}

bool same_agieval_answer(const std::string& answer, const std::string& gold) {
  const auto a = agieval_formula(answer), b = agieval_formula(gold);
  if (!a || !b) return !a && !b;
  return actors::rules::math_equivalent(*a, *b);
}

}  // namespace troupe::launch::evaluation

#include "launch/evaluation/mindspeed/extraction.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/jinja/case.h"
#include "launch/evaluation/agieval_answer.h"

namespace troupe::launch::evaluation::mindspeed {
namespace {

using engine::tokenizer::Range;

/// A pattern of this file.
Regex known(std::string_view pattern) {
  return value_or_throw(python_regex(pattern, "mindspeed"));
}

std::string part(const std::string& text, const Range& range) {
  return text.substr(range.begin, range.end - range.begin);
}

/// The groups of the first match of a pattern of this file, which take no time.
std::optional<std::vector<Range>> search(const Regex& pattern, const std::string& text) {
  auto all = value_or_throw(pattern.find_groups(text));
  if (all.empty()) return std::nullopt;
  return std::move(all.front());
}

std::string before(const std::string& text, std::string_view end) {
  return text.substr(0, text.find(end));
}

/// What str.split(separator)[1] is, stripped; the whole text without the separator.
std::string behind_answer(const std::string& text) {
  constexpr std::string_view separator = "answer is ";
  const std::size_t at = text.find(separator);
  if (at == std::string::npos) return text;
  return stripped(before(text.substr(at + separator.size()), separator));
}

std::string without(const std::string& text, std::string_view which) {
  std::string out;
  for (const char c : text)
    if (which.find(c) == std::string_view::npos) out += c;
  return out;
}

}  // namespace

std::string left_stripped(const std::string& text) {
  return engine::jinja::strip_text(text, nullptr, true, false);
}

std::string first_line(const std::string& text) {
  std::optional<std::string> out;
  engine::jinja::for_each_line(text, false, [&](std::string_view line) {
    if (!out) out = std::string(line);
  });
  return out.value_or("");
}

std::optional<std::string> mmlu_answer(const std::string& text) {
  constexpr std::string_view letters = "A|BCD";
  const auto is_letter = [&](char c) { return letters.find(c) != std::string_view::npos; };
  const std::string line = before(text, "\n");
  for (std::size_t at = line.size(); at-- > 1;)
    if (line[at] == '.' && is_letter(line[at - 1])) return std::string(1, line[at - 1]);
  if (!text.empty() && is_letter(text[0])) return std::string(1, text[0]);
  return std::nullopt;
}

std::string first_capital(const std::string& text) {
  // str.isupper(): the property Uppercase, letters of that category and a few others.
  static const Regex capital = value_or_throw(Regex::compile(
      "[\\p{Lu}\\x{2160}-\\x{216F}\\x{24B6}-\\x{24CF}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}"
      "\\x{1F170}-\\x{1F189}]",
      "first capital"));
  const auto found = search(capital, text);
  return found ? part(text, found->front()) : "";
}

std::string bbh_answer(const std::string& text, bool truth) {
  static const Regex words = known(R"((?i)\b(yes|no|true|false|invalid|valid)\b)");
  std::string out = first_line(text);
  const std::size_t open = out.rfind('(');
  if (open != std::string::npos) out.erase(0, open + 1);
  out = out.substr(0, out.find_first_of(".\n)"));
  const std::string brackets = "()";
  out = engine::jinja::strip_text(out, &brackets, true, true);
  if (!truth) return out;
  const auto found = search(words, out);
  return found ? part(out, found->front()) : out;
}

std::string bbh_reasoned_choice(const std::string& text) {
  static const Regex bracketed = known(R"(\(([A-Z])\)*)"), letter = known("([A-Z])");
  const std::string answer = behind_answer(text);
  for (const Regex* pattern : {&bracketed, &letter})
    if (const auto found = search(*pattern, answer)) return part(answer, (*found)[1]);
  return answer;
}

std::string bbh_reasoned_text(const std::string& text, bool truth) {
  static const Regex bold = known(R"(\*\*(.*?)\*\*)");
  std::string out = stripped(before(behind_answer(text), "\n"));
  if (out.ends_with('.')) out = stripped(out.substr(0, out.size() - 1));
  const auto found = search(bold, out);
  if (!found) return out;
  out = part(out, (*found)[1]);
  return truth ? before(stripped(out), ",") : out;
}

std::optional<std::string> gsm8k_answer(const std::string& text, bool fixed) {
  constexpr std::string_view says = "The answer is ";
  std::string answer = without(before(text, "Q:"), "$,") + "  ";
  if (!fixed) std::ranges::replace(answer, '.', ' ');
  for (std::size_t at = answer.find(says); at != std::string::npos;
       at = answer.find(says, at + 1)) {
    const std::size_t begin = at + says.size();
    const std::size_t end = answer.find_first_of(" \n", begin);
    if (end == std::string::npos || (answer[end] == '\n' && !fixed)) continue;
    std::string found = answer.substr(begin, end - begin);
    if (fixed && found.ends_with('.')) found.pop_back();
    return found;
  }
  return std::nullopt;
}

std::optional<std::string> gsm8k_reasoned(const std::string& text, bool fixed) {
  static const Regex number = known(R"(\-?\d+\.\d+|\-?\d+)");
  static const Regex comma = known(R"((?<=\d),(?=\d{3}))");
  std::string answer = before(text, "Question:");
  if (fixed) answer = value_or_throw(substitute(comma, answer, ""));
  const auto all = value_or_throw(number.find_groups(answer));
  if (all.empty()) return std::nullopt;
  return part(answer, all.back().front());
}

std::string agieval_line(const std::string& text) {
  return without(first_line(text), "$()");
}

std::string agieval_letters(const std::string& text) {
  const std::size_t begin = text.find_first_of("ABCD");
  if (begin == std::string::npos) return "";
  const std::size_t end = text.find_first_not_of("ABCD", begin);
  return text.substr(begin, end == std::string::npos ? end : end - begin);
}

std::optional<std::string> agieval_cloze(const std::string& text) {
  std::string answer = text;
  for (const std::string_view prefix : {"The answer is therefore", "答案是"}) {
    // At the beginning the first one counts, elsewhere the last.
    const std::size_t at = answer.starts_with(prefix) ? 0 : answer.rfind(prefix);
    if (at != std::string::npos) answer = stripped(answer.substr(at + prefix.size()));
  }
  return agieval_formula(answer);
}

Result<LetterSearch> LetterSearch::create(const std::vector<SourceString>& patterns,
                                          const std::string& options, LetterOf what) {
  LetterSearch out;
  out.options_ = options;
  out.what_ = what;
  std::vector<SourceString> all = patterns;
  all.push_back({"([{options}]):", true});
  all.push_back({"([{options}])", true});
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string pattern = with_options(all[i], options);
    // re.DOTALL; flags of a whole pattern stand at its beginning.
    pattern = pattern.starts_with("(?i)") ? cat("(?is)", pattern.substr(4)) : cat("(?s)", pattern);
    auto compiled = python_regex(pattern, cat("pattern ", i, " of the answer's letter"));
    RETURN_IF_ERROR(compiled);
    out.patterns_.push_back(std::move(*compiled));
  }
  return out;
}

Result<std::string> LetterSearch::find(const std::string& given) const {
  const std::string text = stripped(given);
  for (const Regex& pattern : patterns_) {
    const auto all = pattern.find_groups(text);
    RETURN_IF_ERROR(all);
    if (all->empty()) continue;
    const auto& match = all->front();
    std::string found = part(text, match[0]);
    if (what_ == LetterOf::first_group) {
      if (match.size() > 1 && match[1].end > match[1].begin) found = part(text, match[1]);
    } else if (!found.empty()) {
      found = found.substr(found.size() - 1);  // an option is one byte
    }
    for (const char option : options_)
      if (found.find(option) != std::string::npos) return std::string(1, option);
  }
  return std::string();
}

}  // namespace troupe::launch::evaluation::mindspeed

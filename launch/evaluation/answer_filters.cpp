#include "launch/evaluation/answer_filters.h"

#include <algorithm>
#include <map>

#include "engine/base/text/text.h"
#include "engine/jinja/case.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::evaluation {
namespace {

constexpr std::string_view invalid = "[invalid]";

std::string text_setting(const FilterStep& step, std::string_view key, std::string otherwise) {
  const Json* found = step.settings.find(key);
  return found != nullptr && found->is_string() ? found->string() : otherwise;
}
std::int64_t whole_setting(const FilterStep& step, std::string_view key, std::int64_t otherwise) {
  const Json* found = step.settings.find(key);
  return found != nullptr && found->is_integer() ? found->integer() : otherwise;
}

std::string pattern_of(const FilterStep& step) {
  return text_setting(step, "regex_pattern", R"(#### (\-?[0-9\.\,]+))");
}

// What findall()[select] gives: the match, or of several groups the first that is not empty.
// nullopt without such a match, and where several groups are all empty.
Result<std::optional<std::string>> selected(const Regex& regex, const std::string& text,
                                            std::int64_t select) {
  const auto matches = regex.find_groups(text);
  RETURN_IF_ERROR(matches);
  const auto count = std::ssize(*matches);
  const std::int64_t at = select < 0 ? select + count : select;
  if (count == 0) return std::nullopt;
  if (at < 0 || at >= count)
    return fail(Errc::bad_input, cat("group_select ", select, " of ", count, " matches"));
  const auto& match = (*matches)[static_cast<std::size_t>(at)];
  const auto part = [&](std::size_t group) {
    return text.substr(match[group].begin, match[group].end - match[group].begin);
  };
  if (match.size() <= 2) return part(match.size() - 1);
  for (std::size_t group = 1; group < match.size(); ++group)
    if (std::string found = part(group); !found.empty()) return found;
  return std::nullopt;
}

Result<std::string> regex_filter(const FilterStep& step, const std::string& answer) {
  const auto regex = python_regex(pattern_of(step), "filter regex");
  RETURN_IF_ERROR(regex);
  auto found = selected(*regex, answer, whole_setting(step, "group_select", 0));
  RETURN_IF_ERROR(found);
  return *found ? stripped(**found) : text_setting(step, "fallback", std::string(invalid));
}

Result<std::string> map_filter(const FilterStep& step, const std::string& answer) {
  const Json* table = step.settings.find("mapping_dict");
  const Json* found = table != nullptr ? table->find(answer) : nullptr;
  if (found == nullptr) return text_setting(step, "default_value", "None");
  return found->is_string() ? found->string() : found->dump();
}

// build_predictions of tasks/humaneval/utils.py.
Result<std::string> with_prompt(const Json& row, std::string answer, bool until_fence) {
  const Json* prompt = row.find("prompt");
  if (prompt == nullptr || !prompt->is_string())
    return fail(Errc::bad_input, "expected a column prompt");
  if (until_fence) answer = answer.substr(0, answer.find("```"));
  return prompt->string() + answer;
}

using Answers = std::vector<std::string>;

std::string majority(const Answers& answers) {
  std::string best;
  std::ptrdiff_t most = 0;
  for (const std::string& each : answers) {
    const auto count = std::ranges::count(answers, each);
    if (count > most) best = each;
    most = std::max(most, count);
  }
  return best;
}

Result<> apply_to_each(const FilterStep& step, const Json& row, Answers& answers) {
  for (std::string& answer : answers) {
    Result<std::string> out = answer;
    if (step.function == "regex") out = regex_filter(step, answer);
    if (step.function == "remove_whitespace") out = stripped(answer);
    if (step.function == "lowercase") out = engine::jinja::lower(answer);
    if (step.function == "uppercase") out = engine::jinja::upper(answer);
    if (step.function == "map") out = map_filter(step, answer);
    if (step.function == "humaneval") out = with_prompt(row, answer, false);
    if (step.function == "humaneval_instruct") out = with_prompt(row, answer, true);
    RETURN_IF_ERROR(out);
    answer = std::move(*out);
  }
  return {};
}

const std::map<std::string_view, std::vector<std::string>>& settings_of_functions() {
  static const std::map<std::string_view, std::vector<std::string>> all = {
      {"take_first", {}},        {"take_first_k", {"k"}},
      {"majority_vote", {}},     {"regex", {"regex_pattern", "group_select", "fallback"}},
      {"remove_whitespace", {}}, {"lowercase", {}},
      {"uppercase", {}},         {"map", {"mapping_dict", "default_value"}},
      {"humaneval", {}},         {"humaneval_instruct", {}}};
  return all;
}

}  // namespace

Result<> check_filter(const FilterPipeline& pipeline) {
  for (const FilterStep& step : pipeline.steps) {
    const auto known = settings_of_functions().find(step.function);
    if (known == settings_of_functions().end()) {
      std::vector<std::string> names;
      for (const auto& [name, settings] : settings_of_functions()) names.emplace_back(name);
      return fail(Errc::usage, cat(pipeline.name, ": no filter ", quote(step.function),
                                   "; there are ", join(names, ", ")));
    }
    for (const auto& [name, value] : step.settings.object())
      if (std::ranges::find(known->second, name) == known->second.end())
        return fail(Errc::usage, cat(pipeline.name, ": the filter ", step.function,
                                     " has no setting ", quote(name)));
    if (step.function == "regex")
      RETURN_IF_ERROR(python_regex(pattern_of(step), cat("filter ", pipeline.name)));
    if (step.function == "take_first_k" && whole_setting(step, "k", 0) < 1)
      return fail(Errc::usage, cat(pipeline.name, ": take_first_k needs k, at least 1"));
  }
  return {};
}

Result<Json> filtered(const FilterPipeline& pipeline, const Answers& given, const Json& row) {
  Answers answers = given;
  for (const FilterStep& step : pipeline.steps) {
    if (step.function == "take_first") return Json(answers.empty() ? "" : answers.front());
    if (step.function == "majority_vote") answers = {majority(answers)};
    if (step.function == "take_first_k") {
      const auto k = static_cast<std::size_t>(whole_setting(step, "k", 1));
      if (answers.size() < k)
        return fail(Errc::bad_input, cat("take_first_k: ", answers.size(), " answers, wanted ", k,
                                         "; raise repeats of the task"));
      answers.resize(k);
    }
    RETURN_IF_ERROR(apply_to_each(step, row, answers));
  }
  Json::Array out;
  for (std::string& each : answers) out.emplace_back(std::move(each));
  return Json(std::move(out));
}

}  // namespace troupe::launch::evaluation

// Prompts of the suite mindspeed (mindspeed_llm/tasks/evaluation/eval_impl, eval_utils).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json/json.h"
#include "launch/evaluation/mindspeed/suite_options.h"

namespace troupe::launch::evaluation::mindspeed {

/// The text of a column, or "".
std::string column(const Json& row, std::string_view name);

/// A text with fields {name}; unknown fields and other braces stay.
std::string filled(std::string_view form, const std::map<std::string, std::string>& fields);

/// "{question}\nA. ..\nB. ..\nC. ..\nD. ..".
std::string question_with_choices(const Json& row);

/// Alternative mode: all rows of dev with their answers, then the row without.
std::string mmlu_alternative(const Json& row, const std::vector<Json>& dev,
                             const std::string& subject);
std::string mmlu_perplexity(const Json& row, const std::vector<Json>& dev,
                            const std::string& subject);
/// `subject`: in Chinese.
std::string ceval_alternative(const Json& row, const std::vector<Json>& dev,
                              const std::string& subject);
/// `subject`: in the language.
std::string cmmlu_alternative(const Json& row, const std::vector<Json>& dev,
                              const std::string& subject, Language language);

/// Chat mode: rows of dev and the row as messages. `subject`: what the first message names.
Json chat_messages(const Json& row, const std::vector<const Json*>& examples,
                   const std::string& subject, Language language);

/// AGIEval: `parts` are the examples, the line before the options and that before the answer;
/// alternative mode has the task's sentence in their place.
std::string agieval_direct(const Json& row, const std::vector<std::string>& parts);
std::string agieval_alternative(const Json& row, const std::string& sentence, bool chinese);
/// The right answer: a label, several joined by `joint`, or the answer without dollar signs.
std::string agieval_gold(const Json& row, std::string_view joint);

}  // namespace troupe::launch::evaluation::mindspeed

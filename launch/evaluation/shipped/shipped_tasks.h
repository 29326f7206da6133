// The task files that are part of the program. Prompts, choices, stop strings and metrics are those
// of lm-evaluation-harness 0.4.13 (MIT licence); data is not included.
#pragma once

#include <map>
#include <string>

namespace troupe::launch::evaluation {

/// Texts of task files and groups by their names.
const std::map<std::string, std::string>& shipped_tasks();

namespace shipped {
using Texts = std::map<std::string, std::string>;
void add_subjects(Texts& out);  ///< mmlu, ceval-valid, cmmlu
void add_choices(Texts& out);   ///< boolq, hellaswag, arc, agieval, wikitext
void add_texts(Texts& out);     ///< gsm8k, bbh, humaneval
}  // namespace shipped

}  // namespace troupe::launch::evaluation

// Prompts of BIG-Bench Hard from the files of its authors (suzgunmirac/BIG-Bench-Hard,
// cot-prompts/TASK.txt, MIT licence): a description and three examples.
#pragma once

#include <string>
#include <string_view>

#include "launch/evaluation/task_config.h"

namespace troupe::launch::evaluation {

/// Names for fewshot_config.samples, in the place of a Python function: the answers of the examples
/// with their reasoning, or alone.
constexpr std::string_view bbh_reasoning = "bbh_reasoning", bbh_answers = "bbh_answers";

/// Sets the description and the examples of a task whose samples have one of these names, from
/// cot-prompts/NAME.txt in the folder or in its bbh/; leaves other tasks as they are.
/// Errc::not_found, bad_input.
Result<> add_bbh_prompt(TaskConfig& task, const std::string& folder);

}  // namespace troupe::launch::evaluation

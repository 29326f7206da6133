// evaluation: MindSpeed-LLM's evaluation.py, from its command line.
#pragma once

#include <string>
#include <vector>

#include "launch/commands/eval/suite.h"
#include "launch/tools/megatron/flags.h"

namespace troupe::launch::tools::megatron {

/// The options of each task that a command line names, in the order of evaluation.py. A mode that a
/// task does not have is left out, as there: --alternative-prompt of bbh changes nothing. Words
/// fewshot_data=DIR and output=DIR set what evaluation.py takes from its own folder. Errc::usage.
Result<std::vector<commands::SuiteOptions>> evaluation_tasks(const CommandLine& line);

/// What evaluation.py logs of a task: subject, question_n and acc, with the sum.
std::string evaluation_table(const std::string& task, const commands::SuiteReport& report);

/// Evaluates the model of --load and prints a table for each task. Programs of human_eval run where
/// HF_ALLOW_CODE_EVAL is 1. Returns the exit code; throws Failure.
int evaluation(const std::vector<std::string>& words);

}  // namespace troupe::launch::tools::megatron

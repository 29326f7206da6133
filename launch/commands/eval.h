// `troupe eval`: samples completions of the prompts of a file, rewards them by rules and reward
// models, and prints accuracy or pass@k with confidence intervals. Prompts, sampling and rewards
// are those of an evaluation during training (algorithms/rollout/evaluation.h). With --task it
// evaluates public tasks instead (eval/suite.h), with --compare it compares two evaluations of
// them.
#pragma once

#include <string>
#include <vector>

#include "launch/commands/eval/suite.h"
#include "launch/model/model.h"

namespace troupe::launch::commands {

struct EvalOptions {
  model::ModelOptions model;
  std::vector<std::string> data;  ///< files of prompts
  std::string output;             ///< file with one JSON line per item; empty: none
  /// "key=value" for settings of a run that the evaluation uses (reward, eval.samples, rollout.*,
  /// data.*, ...).
  std::vector<std::string> sets;
  bool json = false;                  ///< print one JSON object
  SuiteOptions suite;                 ///< --task; its output and json are those above
  std::vector<std::string> compared;  ///< --compare: two folders of results
};

/// Returns the exit code. Throws Failure.
int eval(const EvalOptions& options);

}  // namespace troupe::launch::commands

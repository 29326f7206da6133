// `troupe eval --task`: evaluation of a model on tasks in the form of lm-evaluation-harness.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/model/model.h"

namespace troupe::launch::commands {

struct SuiteOptions {
  std::vector<std::string> tasks;  ///< names of tasks, groups and tags
  std::string suite = "lm-eval";
  std::vector<std::string> include_paths;  ///< folders of task files
  std::string task_data, fewshot_data;     ///< folders of data
  std::optional<std::int64_t> num_fewshot;
  std::int64_t fewshot_seed = 1234;
  double limit = 0;     ///< items of each task; below 1: a part of them; 0: all
  std::string samples;  ///< file {"task": [numbers of items]}
  std::string system_instruction;
  std::string output;  ///< folder; empty: none
  bool log_samples = false;
  std::int64_t print_prompt = 0;  ///< prints this many items of each task, and evaluates none
  bool allow_code = false;
  bool json = false;  ///< prints the object of results_*.json instead of a table
};

/// Returns the exit code. Throws Failure.
int eval_suite(const SuiteOptions& options, const model::ModelOptions& model);

}  // namespace troupe::launch::commands

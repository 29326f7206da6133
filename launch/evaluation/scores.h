// Scores of items from the answers of the model, as ConfigurableTask.process_results of
// lm-evaluation-harness computes them (lm_eval/api/task.py 0.4.13).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launch/evaluation/metrics.h"
#include "launch/evaluation/task_config.h"
#include "launch/evaluation/task_prompts.h"

namespace troupe::launch::evaluation {

/// Log-probability of a continuation.
struct Likelihood {
  double logp = 0;
  bool greedy = false;  ///< every token is the most likely one
};

/// What the model gave for an item.
struct ItemAnswer {
  std::vector<Likelihood> likelihoods;  ///< one for each continuation
  std::vector<std::string> texts;       ///< generated, one for each repetition
};

/// Runs a program with its tests: whether it ended with status 0 in time.
using CodeCheck = std::function<Result<bool>(const std::string& program)>;

/// The scores of one item: of each metric, in the order of the task.
struct ItemScores {
  Json filtered;  ///< the answers after the filter, as samples_*.jsonl has them
  std::vector<std::pair<std::string, ItemValue>> values;
  bool no_answer = false;  ///< a filter gave "[invalid]" or an empty text
};

/// Of a task of multiple choice or of log-probabilities.
Result<ItemScores> score_likelihoods(const TaskConfig& task, const TaskItem& item, const Json& row,
                                     const std::vector<Likelihood>& likelihoods);
/// Of a generated answer after one filter. `check`: for pass_at_k.
Result<ItemScores> score_texts(const TaskConfig& task, const TaskItem& item, const Json& row,
                               const FilterPipeline& filter, const std::vector<std::string>& texts,
                               const CodeCheck& check);

}  // namespace troupe::launch::evaluation

// TaskResult: the scores of a task over its items, with the lines of samples_*.jsonl.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/evaluation/scores.h"

namespace troupe::launch::evaluation {

/// The items of a task that were evaluated, and what the model gave.
struct TaskRun {
  const TaskConfig* task = nullptr;
  const TaskRows* rows = nullptr;
  std::int64_t num_fewshot = 0;
  std::vector<TaskItem> items;
  std::vector<ItemAnswer> answers;  ///< of each item
  std::int64_t truncated = 0;       ///< items with a context or a text that was cut
};

struct MetricResult {
  std::string metric, filter;
  double value = 0;
  std::optional<double> error;  ///< standard error
  bool higher_is_better = true;
  /// Items with the value 1, where all have 0 or 1.
  std::optional<std::int64_t> passed;
};

struct TaskResult {
  std::string name, alias;
  Json version;
  std::int64_t num_fewshot = 0, original = 0, effective = 0;
  std::vector<MetricResult> metrics;
  /// Items with a cut context, without an answer, and whose scoring failed (they count as wrong).
  std::int64_t truncated = 0, no_answer = 0, errors = 0;
  std::vector<Json> samples;  ///< lines of samples_*.jsonl, filter by filter
  std::string hash;           ///< of the hashes of all samples
};

/// `check`: runs the programs of pass_at_k.
TaskResult score_task(const TaskRun& run, const CodeCheck& check);

/// sha256 of a text, 64 hexadecimal digits.
std::string text_hash(std::string_view text);

}  // namespace troupe::launch::evaluation

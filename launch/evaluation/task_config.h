// TaskConfig: a task or a group of a task file, in the keys of lm-evaluation-harness
// (lm_eval/config/task.py 0.4.13).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/evaluation/metrics.h"
#include "launch/evaluation/task_file.h"

namespace troupe::launch::evaluation {

enum class OutputType { multiple_choice, generate_until, loglikelihood, loglikelihood_rolling };
constexpr std::array<std::string_view, 4> names_of(OutputType) {
  return {"multiple_choice", "generate_until", "loglikelihood", "loglikelihood_rolling"};
}

/// What a continuation of an item adds to its score: its log-probability after the context, that
/// of the last token of its own encoding, or the mean over the tokens of context and continuation.
enum class Scored { continuation, last_token, whole_text };

class AnswerRule;

/// A step of a filter: a function and its settings.
struct FilterStep {
  std::string function;
  Json settings = Json::Object{};
};
struct FilterPipeline {
  std::string name;
  std::vector<FilterStep> steps;
};

struct MetricConfig {
  std::string name;
  Aggregation aggregation = Aggregation::mean;
  bool higher_is_better = true;
  Json settings = Json::Object{};  ///< ignore_case, regexes_to_ignore, k, ...
};

/// How examples are made; empty members: as the items are.
struct FewshotConfig {
  std::string sampler = "default", split;
  std::optional<Json> samples;  ///< rows
  Json text, choice, target;    ///< null: those of the items
  std::optional<std::string> target_delimiter, fewshot_delimiter;
};

struct TaskConfig {
  std::string name, alias, where;  ///< where: file, for messages
  std::vector<std::string> tags;
  std::string dataset_path, dataset_name;
  Json data_files;  ///< dataset_kwargs.data_files: an object of splits, or null
  std::string training_split, validation_split, test_split;
  std::string process_docs, process_results;  ///< names of built-in functions
  /// A column, a template, a whole number, or a list (choices, targets); null: none.
  Json text, target, choice;
  std::string description, target_delimiter = " ", fewshot_delimiter = "\n\n";
  std::optional<std::string> gen_prefix;
  FewshotConfig fewshot;
  std::optional<std::int64_t> num_fewshot;
  OutputType output_type = OutputType::generate_until;
  std::vector<MetricConfig> metrics;
  std::vector<FilterPipeline> filters;
  Json generation = Json::Object{};  ///< generation_kwargs
  std::int64_t repeats = 1;
  bool runs_code = false;  ///< unsafe_code
  /// Of tasks of the suite mindspeed, which have no file.
  Scored scored = Scored::continuation;
  std::shared_ptr<const AnswerRule> rule;  ///< in the place of filters and metrics
  bool counts_all_rows = false;            ///< rows that are not evaluated count as wrong
  double code_seconds = 3;                 ///< for a program with its tests
  Json version;
  Json keys;  ///< all keys of the file and of those that it includes

  /// The split whose rows are evaluated; empty: none.
  const std::string& evaluated_split() const {
    return test_split.empty() ? validation_split : test_split;
  }
};

struct GroupMetric {
  std::string name;
  bool weight_by_size = true;
  std::vector<std::string> filters;  ///< empty: all
};
struct GroupConfig {
  std::string name, alias, where;
  std::vector<std::string> members;  ///< tasks, groups and tags
  std::vector<GroupMetric> metrics;
  Json version;
};

/// Errc::usage, with file and line, for values of a wrong kind and functions that do not exist.
Result<TaskConfig> task_config(const TaskText& text);
Result<GroupConfig> group_config(const TaskText& text);

}  // namespace troupe::launch::evaluation

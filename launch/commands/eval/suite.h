// `troupe eval --task`: evaluation of a model on tasks in the form of lm-evaluation-harness, or of
// MindSpeed-LLM.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/evaluation/mindspeed/suite_options.h"
#include "launch/evaluation/task_library.h"
#include "launch/evaluation/task_result.h"
#include "launch/model/model.h"

namespace troupe::launch::commands {

struct SuiteOptions {
  std::vector<std::string> tasks;  ///< names of tasks, groups and tags
  std::string suite = "lm-eval";
  /// Of the suite mindspeed (evaluation/mindspeed/suite_options.h).
  evaluation::mindspeed::Mode mode = evaluation::mindspeed::Mode::direct;
  evaluation::mindspeed::Language language = evaluation::mindspeed::Language::en;
  std::optional<std::int64_t> max_new_tokens;
  std::string chat_template;  ///< of chat mode and --apply-chat-template; empty: the model's
  bool apply_chat_template = false, fewshot_as_multiturn = false;  ///< of the suite lm-eval
  std::string instruction_template;                                ///< of human_eval
  bool no_chat_template = false, fixed = false, lenient = false;
  bool pandas_cells = true, maps_words = true;
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

struct SuiteReport {
  evaluation::TaskSelection selection;
  std::vector<evaluation::TaskResult> tasks;
  Json json;          ///< of results_*.json
  std::string facts;  ///< a line below the table, or ""
};

/// Evaluates, and writes the files of `output`; nullopt where prompts were printed. Throws Failure.
std::optional<SuiteReport> evaluate_suite(const SuiteOptions& options,
                                          const model::ModelOptions& model);
/// Prints the report. Returns the exit code. Throws Failure.
int eval_suite(const SuiteOptions& options, const model::ModelOptions& model);

}  // namespace troupe::launch::commands

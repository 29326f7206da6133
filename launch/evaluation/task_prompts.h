// TaskPrompts: the requests of a task's items, as ConfigurableTask of lm-evaluation-harness builds
// them (lm_eval/api/task.py and samplers.py 0.4.13).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/evaluation/python_random.h"
#include "launch/evaluation/row_field.h"
#include "launch/evaluation/task_config.h"

namespace troupe::launch::evaluation {

/// Rows after process_docs.
struct TaskRows {
  std::vector<Json> items;
  std::vector<Json> examples;
};

/// A part of a prompt: `delimiter` follows where the parts are one plain text.
struct PromptTurn {
  std::string role, content, delimiter;
};

/// Renders messages by a chat template up to the answer; a last message of the assistant is its
/// beginning.
using RenderTurns = std::function<Result<std::string>(const Json& messages)>;

struct PromptSettings {
  std::optional<std::int64_t> num_fewshot;  ///< instead of the task's, unless that is 0
  std::uint64_t fewshot_seed = 1234;
  std::string system_instruction;
  RenderTurns render = {};         ///< --apply_chat_template; empty: prompts are plain text
  bool examples_as_turns = false;  ///< --fewshot_as_multiturn, with `render`
};

/// What is asked about an item.
struct TaskItem {
  std::int64_t number = 0;  ///< of the row in the split
  std::string context;
  Json target;
  std::vector<std::string> choices;  ///< without the delimiter; of a task of multiple choice
  /// Scored after the context: a choice each, or the target; for acc_mutual_info the choices again,
  /// after an empty context. Of rolling perplexity the text. None for generation.
  std::vector<std::string> continuations;
};

class TaskPrompts {
 public:
  /// `task` and `rows` outlive this. Errc::usage for templates that cannot be read, bad_input for
  /// too few examples.
  static Result<TaskPrompts> create(const TaskConfig& task, const TaskRows& rows,
                                    PromptSettings settings);

  std::size_t size() const { return rows_->items.size(); }
  std::int64_t num_fewshot() const { return num_fewshot_; }
  /// The next item of those that are evaluated. Examples are drawn anew for each in the order of
  /// these calls, so every item of a run has to be taken. Errc::bad_input, with the row.
  Result<TaskItem> item(std::int64_t number);

 private:
  struct Fields {
    RowField text, target;
    std::optional<RowField> choice;
  };
  TaskPrompts(const TaskConfig& task, const TaskRows& rows, PromptSettings settings, Fields items,
              Fields examples)
      : task_(&task),
        rows_(&rows),
        settings_(std::move(settings)),
        items_(std::move(items)),
        examples_(std::move(examples)),
        random_(settings_.fewshot_seed) {}

  Result<std::vector<const Json*>> draw_examples(const Json& row);
  Result<> add_example(const Json& row, std::vector<PromptTurn>& out) const;
  Result<std::vector<PromptTurn>> turns(const Json& row);
  Result<std::string> context(const Json& row);
  Result<std::string> rendered(const std::string& field, const Json& row,
                               const std::string& key) const;
  Result<> add_continuations(const Json& row, TaskItem& item) const;

  const TaskConfig* task_;
  const TaskRows* rows_;
  PromptSettings settings_;
  Fields items_, examples_;
  PythonRandom random_;
  std::int64_t num_fewshot_ = 0;
};

}  // namespace troupe::launch::evaluation

// Tasks of the suite mindspeed, in the form in which tasks are evaluated and scored here: a task
// for each subject, and a group over them.
#pragma once

#include <string>
#include <vector>

#include "launch/evaluation/mindspeed/suite_options.h"
#include "launch/evaluation/task_library.h"
#include "launch/evaluation/task_prompts.h"

namespace troupe::launch::evaluation::mindspeed {

struct SuiteTasks {
  TaskSelection selection;
  std::vector<TaskRows> rows;                ///< of each task
  std::vector<std::vector<TaskItem>> items;  ///< all items of each task
  std::vector<std::string> skipped;  ///< subjects without examples, which the reference leaves out
  std::int64_t pandas_cells = 0;
};

/// Names of the tasks.
const std::vector<std::string>& suite_task_names();

/// The tasks with their data and prompts. Errc::usage for an unknown name, a mode that a task does
/// not have, missing folders; not_found, bad_input.
Result<SuiteTasks> suite_tasks(const std::vector<std::string>& names,
                               const SuiteSettings& settings);

/// Whether a task has a mode.
bool has_mode(const std::string& task, Mode mode);

}  // namespace troupe::launch::evaluation::mindspeed

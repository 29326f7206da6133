// Reports of an evaluation: results_*.json in the names of lm-evaluation-harness, and a table.
#pragma once

#include <string>
#include <vector>

#include "launch/evaluation/task_library.h"
#include "launch/evaluation/task_result.h"

namespace troupe::launch::evaluation {

/// The scores of a group over those of its tasks that were evaluated, in the form of a task's.
TaskResult group_result(const GroupConfig& group, const std::vector<GroupConfig>& groups,
                        const std::vector<TaskResult>& tasks);

/// The object of results_*.json: results, groups, group_subtasks, configs, versions, n-shot,
/// higher_is_better, n-samples, config, task_hashes, and troupe's counts (truncated, no_answer,
/// errors) and intervals. `config`: of the run.
Json results_json(const TaskSelection& selection, const std::vector<TaskResult>& tasks,
                  const Json& config);

/// A table of tasks and groups: metric, filter, value, standard error, Wilson's interval of 95 %,
/// and below it the counts that are not 0.
std::string results_table(const TaskSelection& selection, const std::vector<TaskResult>& tasks);

}  // namespace troupe::launch::evaluation

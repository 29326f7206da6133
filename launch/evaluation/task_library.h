// TaskLibrary: tasks and groups by their names, shipped and from the user's folders.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/evaluation/task_config.h"

namespace troupe::launch::evaluation {

/// What `--task` names: the tasks in their order, and the groups that contain them, inner ones
/// first.
struct TaskSelection {
  std::vector<TaskConfig> tasks;
  std::vector<GroupConfig> groups;
};

class TaskLibrary {
 public:
  /// `folders`: --include-path; every .yaml and .yml file below them. Their tasks replace shipped
  /// ones of the same name. Errc::usage, not_found, unsupported, with file and line.
  static Result<TaskLibrary> load(const std::vector<std::string>& folders);

  /// Tasks, groups and tags by their names. Errc::usage, with the nearest name.
  Result<TaskSelection> select(const std::vector<std::string>& names) const;
  std::vector<std::string> names() const;

 private:
  Result<> add(const std::string& name, TaskSelection& out, std::vector<std::string>& open) const;
  Result<TaskText> text_of(const std::string& name) const;

  std::map<std::string, TaskText> own_;
  std::map<std::string, std::vector<std::string>> tags_;
};

}  // namespace troupe::launch::evaluation

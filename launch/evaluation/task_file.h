// Task files in the keys of lm-evaluation-harness (lm_eval/config/task.py 0.4.13), in YAML. Where a
// file of that program names a Python function by !function, a file here names a built-in function.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::evaluation {

/// The keys of a file with its line numbers.
struct TaskText {
  Json keys = Json::Object{};
  std::map<std::string, std::string> where;  ///< file and line of each key
  std::string file;
};

/// Reads YAML as PyYAML does (yes and no are booleans). `file` names it in messages. Errc::usage
/// for malformed text, for !function, for keys of neither tasks nor groups, with file and line.
Result<TaskText> parse_task_text(std::string_view text, const std::string& file);
/// Reads a file with those that it includes.
Result<TaskText> read_task_file(const std::string& path);

bool is_group(const TaskText& text);

}  // namespace troupe::launch::evaluation

// The task files that are part of the program. Prompts, choices, stop strings and metrics are those
// of lm-evaluation-harness 0.4.13 (MIT licence); data is not included.
#pragma once

#include <map>
#include <string>

namespace troupe::launch::evaluation {

/// Texts of task files and groups by their names.
const std::map<std::string, std::string>& shipped_tasks();

}  // namespace troupe::launch::evaluation

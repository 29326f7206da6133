// when_all(): runs several tasks concurrently on one control executor.
#pragma once

#include <vector>

#include "actors/runtime/task.h"

namespace troupe::actors {

/// Starts all tasks in order, each up to its first suspension, and ends when all have ended. Then
/// rethrows the exception of the first failed task. Objects that the tasks refer to must outlive
/// them.
Task<void> when_all(std::vector<Task<void>> tasks);

}  // namespace troupe::actors

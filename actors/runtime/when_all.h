// when_all(): several tasks of one control executor at the same time.
#pragma once

#include <vector>

#include "actors/runtime/task.h"

namespace troupe::actors {

/// Starts all, in order, each up to its first wait; ends when all have ended. Then throws what the
/// first of them that failed threw. What the tasks refer to must live until all have ended.
Task<void> when_all(std::vector<Task<void>> tasks);

}  // namespace troupe::actors

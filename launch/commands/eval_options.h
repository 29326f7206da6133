// The options of `troupe eval`.
#pragma once

#include <CLI/App.hpp>

#include "launch/commands/eval.h"

namespace troupe::launch::commands {

/// Options of rows and rewards, which set keys of a run, and those of tasks. `options` outlives the
/// parsing.
void add_evaluation(CLI::App& command, EvalOptions& options);

}  // namespace troupe::launch::commands

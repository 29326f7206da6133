// The command line of `troupe eval`.
#pragma once

#include <CLI/App.hpp>
#include <functional>

namespace troupe::launch::commands {

/// `troupe eval`: options of rows and rewards, which set keys of a run, and those of tasks.
void add_eval(CLI::App& app, std::function<int()>& action);

}  // namespace troupe::launch::commands

// Options of `troupe explain`, and the command after `troupe launch --cluster FILE --`.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string>
#include <vector>

#include "launch/commands/explain.h"

namespace troupe::launch::commands {

/// Adds the options to `command`, which must not outlive `options`.
void add_explain_options(CLI::App& command, ExplainOptions& options);

/// The command of a cluster, train or explain, and its options. Throws ArgumentProblem.
std::function<int()> launch_action(const std::string& cluster,
                                   const std::vector<std::string>& arguments);

}  // namespace troupe::launch::commands

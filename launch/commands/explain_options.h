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

/// The options of `troupe launch`.
struct LaunchArguments {
  std::string cluster;             ///< path of the cluster file
  std::string via;                 ///< a name of cluster::Via, or ""
  std::string write_sbatch;        ///< path of a script for sbatch, or ""
  std::vector<std::string> words;  ///< train or explain, and its options
};
/// The command of a cluster, train or explain, and its options. Throws ArgumentProblem.
std::function<int()> launch_action(const LaunchArguments& arguments);

}  // namespace troupe::launch::commands

// `troupe launch`: a run as groups of processes, on this host or on several. This process is the
// controller: it locks the output directory, reads the data, executes the algorithm and writes the
// journal. Every group is a child process (worker.h); a group of several ranks runs under mpirun.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/cluster/cluster_file.h"
#include "launch/recipes/resolve.h"

namespace troupe::launch::cluster {

struct LaunchOptions {
  std::string cluster;          ///< path of the cluster file
  recipes::Sources sources;     ///< configuration of the run
  std::optional<Via> via = {};  ///< nullopt: ssh where the file has hosts
  std::string build = {};       ///< this program: "troupe 0.1.0 (commit 0123456789)"
  /// Writes a script for sbatch to this path instead; "": none. `words` are the command in it.
  std::string write_sbatch = {};
  std::vector<std::string> words = {};
};

/// Runs until the algorithm ends, a signal arrives or a process of the cluster exits; returns this
/// process's exit code. Throws Failure.
int launch(const LaunchOptions& options);

}  // namespace troupe::launch::cluster

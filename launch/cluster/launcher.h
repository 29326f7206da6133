// launch: a run as groups of processes on this host. This process is the controller: it holds the
// output directory, reads the data, runs the algorithm and keeps the journal; every group is a
// child (worker.h), a group of several ranks through mpirun.
#pragma once

#include <string>

#include "launch/config/resolve.h"

namespace troupe::launch {

struct LaunchOptions {
  std::string cluster;  ///< the cluster file
  Sources sources;      ///< of the run
};

/// Runs to the end, to a signal or to the death of a process, and returns this process's exit code.
/// Throws Failure.
int launch(const LaunchOptions& options);

}  // namespace troupe::launch

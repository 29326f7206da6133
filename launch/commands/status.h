// `troupe status RUN`: what the processes of a run do.
#pragma once

#include <string>

namespace troupe::launch::commands {

struct StatusOptions {
  std::string run;
  bool json = false;
};

/// Prints the state of the run, and its groups while it is running; returns the exit code. Throws
/// Failure: Errc::not_found for a directory that is no run.
int status(const StatusOptions& options);

}  // namespace troupe::launch::commands

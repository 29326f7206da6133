// A run in one process.
#pragma once

#include "launch/config/run_config.h"

namespace troupe::launch {

/// Runs the configured algorithm with all actors in this process, to its end or to a signal
/// (interrupt.h), and returns the exit code. Throws Failure.
int train_in_process(const RunConfig& config);

}  // namespace troupe::launch

// train: a whole run in one process, from a resolved configuration.
#pragma once

#include "launch/config/run_config.h"

namespace troupe::launch {

/// Assembles node, actors and algorithm, runs to the end (or to a signal: launch/run/interrupt.h)
/// and returns the process's exit code. Throws Failure.
int train(const RunConfig& config, const Origins& origins);

}  // namespace troupe::launch

// `troupe train`: a run in one process, without a cluster.
#pragma once

#include "launch/config/run_config.h"

namespace troupe::launch::run {

/// Runs the algorithm to its end or to a signal. The ranks of each model are threads, which take
/// turns with those of the others. Returns the exit code. Throws Failure.
int train_in_process(const config::RunConfig& config);

}  // namespace troupe::launch::run

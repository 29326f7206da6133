// `troupe train`: runs the configured algorithm.
#pragma once

#include "launch/config/resolve.h"

namespace troupe::launch {

/// Runs the configured algorithm in one process, or in a group of ranks under mpirun. Returns
/// the exit code; throws Failure.
int train(const Sources& sources);

}  // namespace troupe::launch

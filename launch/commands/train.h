// `troupe train`: runs the configured algorithm.
#pragma once

#include "launch/recipes/resolve.h"

namespace troupe::launch::commands {

/// Runs the configured algorithm in one process, or in a group of ranks under mpirun. Returns
/// the exit code; throws Failure. `only_dry_run`: one step whose results are removed (dry_run.h).
int train(const recipes::Sources& sources, bool only_dry_run = false);

}  // namespace troupe::launch::commands

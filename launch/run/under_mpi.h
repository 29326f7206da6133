// `mpirun -n N troupe train`: a run over one group of N ranks, without a cluster.
#pragma once

#include "launch/config/run_config.h"

namespace troupe::launch::run {

/// Rank 0 executes the algorithm and alone writes the output directory; the other ranks run their
/// part of each actor. The policy is sharded by parallel.*, whose product must be N. The reference
/// and the rollouts are N replicas that share the work, so the grid does not change their results.
/// Returns the exit code on every rank; throws Failure on all ranks or on none.
int train_under_mpirun(const config::RunConfig& config);

}  // namespace troupe::launch::run

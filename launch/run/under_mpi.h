// `mpirun -n N troupe train`: one group of N ranks, without a cluster.
#pragma once

#include "launch/config/run_config.h"

namespace troupe::launch {

/// Rank 0 runs the algorithm, answers for the group and alone writes the output directory; the
/// others follow. The policy is sharded by parallel.*, whose product must be N; the reference and
/// the rollouts are N replicas that share the work, so that the grid changes none of their numbers.
/// Returns the exit code, on every rank; throws Failure on all ranks alike.
int train_under_mpirun(const RunConfig& config);

}  // namespace troupe::launch

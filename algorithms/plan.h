// Plan: how long a run is, at which rate it learns, when it saves; and the end of a step, which is
// the same for every algorithm.
#pragma once

#include <cstdint>

#include "algorithms/cluster.h"
#include "engine/optim/schedule.h"

namespace troupe::algorithms {

struct Plan {
  std::int64_t steps = 0;       ///< optimizer steps of the whole run
  std::int64_t done = 0;        ///< those of the checkpoint that the run goes on from
  std::int64_t save_every = 0;  ///< 0: only the last
  double learning_rate = 0;
  engine::optim::Schedule schedule;

  /// Steps count from 1.
  double rate(std::int64_t step) const { return learning_rate * schedule(step - 1); }
};

/// After step `step`: saves when it is due, last, or a stop was requested, with what the algorithm
/// needs to go on from here. `previous` is the last step that was checked before (step - 1, unless
/// several steps share one batch of samples). False when the run is to end here.
Task<bool> end_step(Cluster& cluster, const Plan& plan, std::int64_t previous, std::int64_t step,
                    Json state);

/// For a run whose prompts end before its steps do: saves step `step`, unless end_step has saved
/// it. `previous` as there.
Task<void> end_early(Cluster& cluster, const Plan& plan, std::int64_t previous, std::int64_t step,
                     Json state);

/// Trains on the batch at the rate of this step: the numbers to write down.
Task<Metrics> update(Cluster& cluster, const Plan& plan, std::int64_t step,
                     engine::data::Experience batch, engine::loss::LossSpec loss);

/// The numbers that every training step reports, then the loss's own.
Metrics metrics_of(const protocol::StepStats& stats);

}  // namespace troupe::algorithms

// AsyncTimes: how long each side of a run with async.mode on had no work, from the states that the
// algorithm reports. Depends on time, so it is part of timings.jsonl.
#pragma once

#include <cstdint>
#include <optional>

#include "algorithms/training/journal.h"

namespace troupe::launch::journal {

/// Seconds in which both sides had batches to work on, and those of them without work.
struct IdleSeconds {
  double all = 0;
  double rollout = 0;  ///< mean over the rollouts: no request
  double policy = 0;   ///< no complete batch
};

/// Times are in nanoseconds of one clock, in ascending order.
class AsyncTimes {
 public:
  void begin(std::int64_t now);
  void changed(const algorithms::Overlap& state, std::int64_t now);
  /// Ends a step; the next one begins at `now`. Means over the time of the step: async/queue, of
  /// the complete batches that wait for training; async/in_flight, of the samples that are
  /// generated or rewarded. Seconds of the step: async/waiting_for_weights, in which the next batch
  /// waits for its version; timing/idle/rollout, mean over the rollouts, and timing/idle/policy.
  /// Empty unless changed() was called.
  algorithms::Metrics end(std::int64_t now);
  /// Sum over the run, without its first batch and the time in which no further batch is started.
  const IdleSeconds& idle() const { return idle_; }

 private:
  void spend(std::int64_t now);

  std::optional<algorithms::Overlap> state_;
  std::int64_t at_ = 0;
  double all_ = 0, queue_ = 0, in_flight_ = 0, waiting_ = 0;  // of the step: integrals over time
  double rollout_ = 0, policy_ = 0;
  IdleSeconds idle_;
};

}  // namespace troupe::launch::journal

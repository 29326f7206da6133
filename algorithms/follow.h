// A reference that follows the policy at a distance: TR-DPO (Gorbatovski et al. 2024,
// arXiv:2404.09656, eq. 5).
#pragma once

#include "algorithms/plan.h"

namespace troupe::algorithms {

struct Following {
  std::int64_t every = 0;  ///< steps between two moves; 0: the reference stays what it is
  double share = 0.6;      ///< of the policy in the reference's new weights
  bool due(std::int64_t step) const { return every > 0 && step % every == 0; }
};

/// reference <- share * policy + (1 - share) * reference, in two phases: the follower takes the
/// policy's weights in beside its own, checks their sums and says what the probe's tokens mean to
/// it; when that agrees with the policy, it mixes. Needs c.follower. Errc::corrupt when it does not
/// agree; the reference has then not moved.
Task<void> follow_policy(Cluster& c, double share);

/// A step whose update is done: writes it down, moves the reference when that is due, and ends it
/// as end_step does.
Task<bool> close_step(Cluster& c, const Plan& plan, std::int64_t step, Metrics metrics,
                      Following following, Json state);

}  // namespace troupe::algorithms

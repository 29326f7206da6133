// The verb that brings new weights to the rollouts, for every algorithm that samples from what it
// trains.
#pragma once

#include "algorithms/cluster.h"
#include "algorithms/plan.h"
#include "engine/base/fields.h"

namespace troupe::algorithms {

/// Throws Failure (Errc::corrupt, naming `who`) unless `logp`, what somebody makes of the probe
/// with these weights, is what the policy does.
void expect_agreement(const protocol::Weights& weights, const std::vector<float>& logp,
                      const transports::Address& who);

/// The policy's weights of now to every rollout, in two phases: each first takes them in beside its
/// own, checks their sums and says what the probe's tokens mean to it; when all agree with the
/// policy, each swaps. When one does not (Errc::corrupt, with its name), none has changed.
Task<void> refresh_rollouts(Cluster& c);

// A reference that follows the policy at a distance: TR-DPO (Gorbatovski et al. 2024,
// arXiv:2404.09656, eq. 5).
constexpr const char* reference_doc = "reference model directory; empty: the initial weights";

struct Following {
  std::int64_t every = 0;  ///< steps between two moves; 0: the reference stays what it is
  double share = 0.6;      ///< of the policy in the reference's new weights
  static void each_field(auto& self, auto&& field) {
    field("sync_every", self.every, at_least_0,
          "update the reference towards the policy every N steps (TR-DPO; TRL's sync_ref_model "
          "with 512); 0: never");
    field("sync_share", self.share, from_0_to_1,
          "reference = share * policy + (1 - share) * reference (TRL's ref_model_mixup_alpha)");
  }
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

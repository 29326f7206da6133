// The verb that brings new weights to the rollouts, for every algorithm that samples from what it
// trains.
#pragma once

#include "algorithms/cluster.h"

namespace troupe::algorithms {

/// Throws Failure (Errc::corrupt, naming `who`) unless `logp`, what somebody makes of the probe
/// with these weights, is what the policy does.
void expect_agreement(const protocol::Weights& weights, const std::vector<float>& logp,
                      const transports::Address& who);

/// The policy's weights of now to every rollout, in two phases: each first takes them in beside its
/// own, checks their sums and says what the probe's tokens mean to it; when all agree with the
/// policy, each swaps. When one does not (Errc::corrupt, with its name), none has changed.
Task<void> refresh_rollouts(Cluster& c);

}  // namespace troupe::algorithms

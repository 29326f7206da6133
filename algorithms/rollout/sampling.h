// Sampling: the rollouts generate, and each chunk is rewarded and compared while they continue.
#pragma once

#include "algorithms/rollout/samples.h"

namespace troupe::algorithms {

/// Samples of `prompts` with their rewards; `with_reference` adds the log-probabilities of
/// c.reference. Needs c.rollouts, and c.verifier or c.reward or both. The result does not depend on
/// which rollout generated which sample, or when. apply_rewards() is left to the caller.
Task<RolloutBatch> sample_rollouts(Cluster& c, const PromptBatch& prompts,
                                   const RolloutOptions& options, bool with_reference);

/// Moves old_logp to rollout_logp and asks the policy for old_logp: for rollouts that sampled from
/// other weights.
Task<void> recompute_old_logp(Cluster& c, engine::data::Experience& batch, double temperature);

}  // namespace troupe::algorithms

// A round of samples: drawn by the rollouts, judged and compared while they draw on.
#pragma once

#include "algorithms/rollout/samples.h"

namespace troupe::algorithms {

/// Needs c.rollouts, and c.verifier or c.reward or both; with `compare` c.reference, whose
/// log-probabilities then stand in the batch. What comes back does not depend on who drew what, or
/// when; its verdicts are still to be accepted (samples.h).
Task<Sampled> sample_and_judge(Cluster& c, const PromptBatch& prompts, const DrawConfig& config,
                               bool compare);

/// Asks the policy for the old_logp of a round whose rollouts drew from other weights; what these
/// said becomes rollout_logp.
Task<void> recompute_old(Cluster& c, engine::data::Experience& batch, double temperature);

}  // namespace troupe::algorithms

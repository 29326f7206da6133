// Sampling: the rollouts generate, and each chunk is rewarded and compared while they continue.
#pragma once

#include <memory>

#include "algorithms/rollout/finished_samples.h"
#include "algorithms/rollout/samples.h"

namespace troupe::algorithms {

class RolloutPool;

/// Where samples come from: the rollouts with the weights that they have, or a pool, whose rollouts
/// take over `weights` first, or (null) have those of version `oldest` or later.
struct Sampling {
  Sampling(Cluster& actors) : cluster(actors) {}
  Sampling(Cluster& actors, RolloutPool& rollouts, std::shared_ptr<const protocol::Weights> version)
      : cluster(actors), pool(&rollouts), weights(std::move(version)) {}
  Sampling(Cluster& actors, RolloutPool& rollouts, std::uint64_t oldest_version)
      : cluster(actors), pool(&rollouts), oldest(oldest_version) {}

  Cluster& cluster;
  RolloutPool* pool = nullptr;
  std::shared_ptr<const protocol::Weights> weights;
  std::uint64_t oldest = 0;
  /// Samples of this batch that are finished are not generated again; others are added. Or null.
  FinishedSamples* finished = nullptr;
  std::int64_t batch = 0;
  SampleLedger* ledger = nullptr;  ///< records the samples, which are those of `batch`
  /// Set when the first prompts are queued in the pool.
  std::shared_ptr<bool> queued = std::make_shared<bool>(false);
};

/// Samples of `prompts` with their rewards; `with_reference` adds the log-probabilities of
/// Cluster::reference. Needs rollouts, and a verifier or reward models or both. The result does not
/// depend on which rollout generated which sample, or when. apply_rewards() is left to the caller.
/// Throws RewardFailure when more rewards failed than options.max_reward_failures.
Task<RolloutBatch> sample_rollouts(Sampling from, PromptBatch prompts, RolloutOptions options,
                                   bool with_reference);

/// Moves old_logp to rollout_logp and asks the policy for old_logp: for rollouts that sampled from
/// other weights.
Task<void> recompute_old_logp(Cluster& c, engine::data::Experience& batch, double temperature);

}  // namespace troupe::algorithms

// Weight synchronization: from the policy to the rollouts, and to a reference that is updated
// during training.
#pragma once

#include "algorithms/training/cluster.h"
#include "algorithms/training/plan.h"
#include "engine/base/json/fields.h"

namespace troupe::algorithms {

using WeightReceiver = actors::ActorRef<protocol::PrepareWeights>;

/// Throws Failure (Errc::corrupt, naming `who`) unless `logp`, the receiver's log-probabilities of
/// the probe, agrees with the policy's.
void check_probe(const protocol::Weights& weights, const std::vector<float>& logp,
                 const transports::Address& who);

/// The policy's current weights as version `batches`.
Task<protocol::Weights> publish_weights(Cluster& c, std::int64_t batches);

/// Loads weights, which outlive the task, at one receiver beside those that it uses, and compares
/// its probe. Throws Failure.
Task<void> prepare_weights(Cluster& c, WeightReceiver receiver, const protocol::Weights& weights);

/// Switches one rollout to weights that it has prepared.
Task<void> commit_weights(Cluster& c, RolloutRef rollout, const protocol::Weights& weights);

/// Brings those of the last sync_weights() to a rollout that has joined since then. Needs
/// c.recovery.
Task<void> take_weights(Cluster& c, RolloutRef rollout);

/// Sends the policy's current weights, trained on `batches` batches, to every rollout, in two
/// phases: each rollout first loads them beside its own, verifies their checksums and scores the
/// probe; when all agree with the policy, each switches. When one does not (Errc::corrupt, with its
/// name), none has changed. With c.recovery, a rollout that is lost is left out.
Task<void> sync_weights(Cluster& c, std::int64_t batches);

// TR-DPO (Gorbatovski et al. 2024, arXiv:2404.09656, eq. 5): a reference that follows the policy.
constexpr const char* reference_doc =
    "reference model directory, or an adapter of the run's model; empty: the initial weights";

struct ReferenceSync {
  std::int64_t every = 0;  ///< steps between two updates; 0: the reference is fixed
  double share = 0.6;      ///< weight of the policy in the updated reference
  static void each_field(auto& self, auto&& field) {
    field("sync_every", self.every, Range{0, 1e12},
          "update the reference towards the policy every N steps (TR-DPO; TRL's sync_ref_model "
          "with 512); 0: never");
    field("sync_share", self.share, from_0_to_1,
          "reference = share * policy + (1 - share) * reference (TRL's ref_model_mixup_alpha)");
  }
  bool due(std::int64_t step) const { return every > 0 && step % every == 0; }
};

/// reference <- share * policy + (1 - share) * reference, in two phases as in sync_weights(). Needs
/// c.synced_reference. Errc::corrupt when the probe does not agree; the reference is then
/// unchanged.
Task<void> sync_reference(Cluster& c, std::int64_t batches, double share);

/// Finishes a step after its update: records the metrics, synchronizes the reference if that is
/// due, and ends the step as end_step() does. `data`: the loader's state.
Task<bool> finish_step(Cluster& c, TrainingPlan& plan, std::int64_t step, Metrics metrics,
                       ReferenceSync sync, Json data);

}  // namespace troupe::algorithms

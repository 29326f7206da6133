// Cluster: the actors of a run, in this process or in groups of processes.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "actors/protocol/generate.h"
#include "actors/protocol/reward.h"
#include "actors/protocol/train.h"
#include "actors/runtime/actor_ref.h"
#include "actors/runtime/stop.h"
#include "algorithms/training/journal.h"
#include "algorithms/training/recovery.h"
#include "algorithms/training/sample_ledger.h"
#include "algorithms/training/weight_stream.h"
#include "algorithms/training/weight_versions.h"

namespace troupe::algorithms {

namespace protocol = actors::protocol;
using actors::Task;

using PolicyRef = actors::ActorRef<protocol::TrainStep, protocol::Logprobs, protocol::Score,
                                   protocol::Publish, protocol::Save, protocol::FinishSave>;
using RolloutRef = actors::ActorRef<protocol::Generate, protocol::PrepareWeights,
                                    protocol::CommitWeights, protocol::CancelSamples>;
using CriticRef =
    actors::ActorRef<protocol::TrainStep, protocol::Score, protocol::Save, protocol::FinishSave>;
using SyncedReferenceRef =
    actors::ActorRef<protocol::PrepareWeights, protocol::MixWeights, protocol::Save>;
/// A verifier (rules) or reward models.
using RewardRef = actors::ActorRef<protocol::ComputeRewards>;

/// The reference model: an actor of its own, or the base of the policy, without its adapter.
class ReferenceRef {
 public:
  template <actors::Message... Ms>
  ReferenceRef(const actors::ActorRef<Ms...>& own) : ref_(own) {}
  static ReferenceRef base_of(const PolicyRef& policy) {
    ReferenceRef reference(
        actors::ActorRef<protocol::Logprobs, protocol::Release>(policy.asker(), policy.address()));
    reference.base_ = true;
    return reference;
  }

  actors::Reply<std::vector<float>> ask(protocol::Logprobs message,
                                        std::chrono::steady_clock::duration timeout) const {
    message.base = base_;
    return ref_.ask(std::move(message), timeout);
  }
  actors::Reply<void> ask(protocol::Release message,
                          std::chrono::steady_clock::duration timeout) const {
    return ref_.ask(std::move(message), timeout);
  }
  const auto& asker() const { return ref_.asker(); }
  const auto& address() const { return ref_.address(); }

 private:
  actors::ActorRef<protocol::Logprobs, protocol::Release> ref_;
  bool base_ = false;
};

struct Cluster {
  PolicyRef policy;
  std::optional<ReferenceRef> reference;  ///< if the loss needs one
  /// Interchangeable: any of them may generate any sample. With `recovery`, each is an incarnation,
  /// and take_successor() puts the next one in its place.
  std::vector<RolloutRef> rollouts;
  std::optional<RewardRef> verifier;  ///< rules
  Journal& journal;
  const actors::Stop& stop;  ///< checked after every step
  /// Chunks that a rollout's share of a batch is split into, so that the reference scores one while
  /// the rollout generates the next. 1 where they share an engine. Does not change results.
  std::size_t chunks_per_rollout = 1;
  /// Time limit of a reply. A message that takes an hour means a model too large for its machine,
  /// or a worker that hangs.
  std::chrono::steady_clock::duration timeout = std::chrono::hours(1);
  std::optional<RewardRef> reward;  ///< reward models, besides the verifier or instead of it
  std::optional<CriticRef> critic;  ///< PPO; saved with the policy
  /// The reference, where it is synchronized with the policy (TR-DPO); saved with the policy.
  std::optional<SyncedReferenceRef> synced_reference;
  WeightVersions* versions = nullptr;  ///< of an asynchronous run; saved with the policy
  /// Brings weights to other processes; nullptr: messages do, within one process.
  WeightStream* stream = nullptr;
  SampleLedger* ledger = nullptr;  ///< nullptr: nothing is recorded
  /// Rollouts that are lost are replaced; nullptr: the first that is lost ends the run.
  Recovery* recovery = nullptr;
  bool overlaps_saves = true;  ///< the policy and the critic train on while they save
  bool saving = false;         ///< the policy is writing a checkpoint
  bool critic_saving = false;  ///< the critic is, of the same step
};

/// Puts the incarnation of a rollout that is present, or expected, in the place of one that was
/// lost. False while it is not present.
bool take_successor(Cluster& c, RolloutRef& rollout);
/// Whether this incarnation of a rollout is present.
bool is_present(const Cluster& c, const RolloutRef& rollout);
/// As survives() of recovery.h, for asks of `rollout`.
Task<bool> survives(Cluster& c, const RolloutRef& rollout, Task<void> work);

}  // namespace troupe::algorithms

// Cluster: the actors that an algorithm speaks to, whether they live in this process or in groups
// of processes.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "actors/protocol/generate.h"
#include "actors/protocol/reward.h"
#include "actors/protocol/train.h"
#include "actors/runtime/actor_ref.h"
#include "actors/runtime/stop.h"
#include "algorithms/journal.h"

namespace troupe::algorithms {

namespace protocol = actors::protocol;
using actors::Task;

using PolicyRef = actors::ActorRef<protocol::TrainStep, protocol::Logprobs, protocol::Score,
                                   protocol::Publish, protocol::Save>;
using RolloutRef =
    actors::ActorRef<protocol::Generate, protocol::PrepareWeights, protocol::CommitWeights>;
using CriticRef = actors::ActorRef<protocol::TrainStep, protocol::Score, protocol::Save>;
using FollowerRef =
    actors::ActorRef<protocol::PrepareWeights, protocol::MixWeights, protocol::Save>;
/// A verifier (rules) or reward models.
using RewardRef = actors::ActorRef<protocol::ComputeRewards>;

/// The model that an algorithm compares with: an actor of its own, or the policy, asked for its
/// base without the adapter.
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
                                        std::chrono::steady_clock::duration patience) const {
    message.base = base_;
    return ref_.ask(std::move(message), patience);
  }
  actors::Reply<void> ask(protocol::Release message,
                          std::chrono::steady_clock::duration patience) const {
    return ref_.ask(std::move(message), patience);
  }
  const auto& asker() const { return ref_.asker(); }
  const auto& address() const { return ref_.address(); }

 private:
  actors::ActorRef<protocol::Logprobs, protocol::Release> ref_;
  bool base_ = false;
};

struct Cluster {
  PolicyRef policy;
  std::optional<ReferenceRef> reference;  ///< only when the algorithm's loss needs one
  std::vector<RolloutRef> rollouts;       ///< equals: any of them may draw any sample
  std::optional<RewardRef> verifier;
  Journal& journal;
  const actors::Stop& stop;  ///< asked between steps: save and leave
  /// Into how many requests a rollout's share of a batch is cut, so that the reference scores one
  /// while the rollout draws the next. 1 where they share an engine. Changes no result.
  std::size_t pieces = 1;
  /// How long an answer may take: an hour of work for one message is a model too large for its
  /// machine, or a worker that hangs.
  std::chrono::steady_clock::duration patience = std::chrono::hours(1);
  std::optional<RewardRef> reward;  ///< reward models; beside the verifier, or instead of it
  std::optional<CriticRef> critic;  ///< only where advantages come from one; saved with the policy
  std::optional<FollowerRef>
      follower;  ///< the reference, where it follows the policy (TR-DPO); saved with the policy
};

}  // namespace troupe::algorithms

// The roles of a run, made from its configuration: the same code whether all live in one process or
// each in its own.
#pragma once

#include <memory>
#include <string>

#include "actors/roles/rollout.h"
#include "actors/roles/scorer.h"
#include "actors/roles/trainer.h"
#include "actors/roles/verifier.h"
#include "engine/checkpoint/directory_lock.h"
#include "launch/config/run_config.h"
#include "launch/run/session.h"
#include "launch/run/text_model.h"

namespace troupe::launch {

/// What every role is made from. `from`: the checkpoint that the run goes on from, or "".
struct RoleParts {
  const RunConfig& config;
  const std::string& from;
  engine::ops::Device& device;                   ///< outlives the role
  const engine::parallel::Mesh* mesh = nullptr;  ///< of a role that is a group; outlives it. Each
                                                 ///< rank makes its part, all at the same time
  const engine::checkpoint::DirectoryLock* output =
      nullptr;  ///< of the policy's leader: the run's directory; outlives the role
  std::shared_ptr<const TextModel> text =
      nullptr;  ///< turns the policy's tokens into text, for the roles that read it
};

/// The model as it is to be trained on: the checkpoint's weights and moments, or the starting
/// weights. Its checkpoints go to `parts.output`.
actors::roles::Trainer make_policy(const RoleParts& parts);
/// PPO's critic: weights and optimizer of its own, from critic.model, the starting weights or its
/// checkpoint of the same step as the policy's. Its checkpoints go to the folder `critic` of the
/// run's output; the leader writes.
actors::roles::Trainer make_critic(const RoleParts& parts);
/// The model that the algorithm compares with: Recipe::reference, or the one that training began
/// from.
actors::roles::Scorer make_reference(const RoleParts& parts);
/// A model of the trained one's shape, whose weights come by message. Reads `parts.text`.
actors::roles::Rollout make_rollout(const RoleParts& parts);
actors::roles::Verifier make_verifier(const RunConfig& config);

}  // namespace troupe::launch

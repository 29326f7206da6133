// The actors of a run, created from its configuration: the same code for all placements.
#pragma once

#include <memory>
#include <string>

#include "actors/roles/reward_models.h"
#include "actors/roles/rollout.h"
#include "actors/roles/scorer.h"
#include "actors/roles/trainer.h"
#include "actors/roles/verifier.h"
#include "engine/checkpoint/directory_lock.h"
#include "launch/config/run_config.h"
#include "launch/run/session.h"
#include "launch/run/text_model.h"

namespace troupe::launch::run {

/// Resources from which the actor of a role with a model is created.
struct RoleParts {
  const config::RunConfig& config;
  /// The checkpoint that the run resumes from, or "".
  const std::string& resume_from;
  /// Outlives the role.
  engine::ops::Device& device;
  /// The mesh of a role that is a group; outlives the role. All ranks create their part at the same
  /// time.
  const engine::parallel::Mesh* mesh = nullptr;
  /// The run's directory, on the policy's leader only; outlives the role.
  const engine::checkpoint::DirectoryLock* output = nullptr;
  /// Decodes the policy's tokens, for the roles that read text.
  std::shared_ptr<const TextModel> text = nullptr;
};

/// The model to train: the checkpoint's weights and moments, or the starting weights. Writes its
/// checkpoints to `parts.output`. Throws Failure, as the others do.
actors::roles::Trainer make_policy(const RoleParts& parts);
/// PPO's critic, with weights and an optimizer of its own: from critic.model, the starting weights,
/// or its checkpoint of the policy's step. The leader writes its checkpoints to the folder `critic`
/// of the run's output.
actors::roles::Trainer make_critic(const RoleParts& parts);
/// The reference model: Recipe::reference, or the model that training started from. If it follows
/// the policy (TR-DPO), its weights move; it is then saved in the folder `reference` of the run's
/// output before each checkpoint of the policy, under the same step.
actors::roles::Scorer make_reference(const RoleParts& parts);
/// A model of the policy's shape, whose weights arrive by message. Needs `parts.text`.
actors::roles::Rollout make_rollout(const RoleParts& parts);
/// The reward models of the key reward. Their scores are read at the policy's own tokens, so they
/// must have the policy's vocabulary. Needs `parts.text`.
actors::roles::RewardModels make_reward(const RoleParts& parts);
actors::roles::Verifier make_verifier(const config::RunConfig& config);

}  // namespace troupe::launch::run

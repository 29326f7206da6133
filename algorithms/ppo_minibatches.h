// PPO's minibatches, computed from the samples of a rollout step. Pure functions, without actors.
#pragma once

#include <vector>

#include "algorithms/ppo.h"

namespace troupe::algorithms {

/// The same samples with a mask of the states that the critic evaluates: the state before each
/// trained token, and the state after a sample's last. Read at the token itself (ReadAt::token).
engine::data::Experience critic_inputs(const engine::data::Experience& batch);

/// Fills value, advantage, returns and the metrics objective/* (TRL) and critic/* (verl) of samples
/// whose rewards were applied. `critic_values` [T]: the critic's values of critic_inputs(batch).
void compute_advantages(RolloutBatch& samples, const std::vector<float>& critic_values,
                        double kl_coef, const PpoConfig& config);

/// Mean KL estimate per sample between policy and reference, in nats: the input of an adaptive
/// controller.
double mean_kl(const engine::data::Experience& batch, const PpoConfig& config);

struct PpoMinibatch {
  engine::data::Experience policy, critic;
};

/// epochs * minibatches updates. Every epoch permutes the samples anew, by `rollout_step` and the
/// sampling seed alone.
std::vector<PpoMinibatch> minibatches(const RolloutBatch& samples, const PpoConfig& config,
                                      std::uint64_t rollout_step);

}  // namespace troupe::algorithms

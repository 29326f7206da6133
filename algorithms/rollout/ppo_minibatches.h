// The arithmetic of a PPO round as pure functions: from samples, verdicts and values to the updates
// of policy and critic.
#pragma once

#include <vector>

#include "algorithms/ppo.h"

namespace troupe::algorithms {

/// The same samples with a mask that names the states that a critic is to judge: the one before
/// each trained token, and the one after a sample's last. Read at the token itself (ReadAt::token).
engine::data::Experience states_of(const engine::data::Experience& batch);

/// Rewards, advantages and returns of a round whose verdicts were accepted. `judged` [T]: the
/// critic's values of states_of(batch). `kl_coef`: of this round. Fills value, advantage, returns
/// and the metrics objective/* (TRL) and critic/* (verl).
void settle(Sampled& sampled, const std::vector<float>& judged, double kl_coef,
            const PpoConfig& config);

/// Nats per sample between policy and reference, as the estimator has them: what an adaptive
/// controller looks at.
double mean_kl(const engine::data::Experience& batch, const PpoConfig& config);

struct PpoUpdate {
  engine::data::Experience policy, critic;
};

/// epochs * minibatches updates. Every epoch deals the samples anew, by `round` and the sampling
/// seed alone.
std::vector<PpoUpdate> updates_of(const Sampled& sampled, const PpoConfig& config,
                                  std::uint64_t round);

}  // namespace troupe::algorithms

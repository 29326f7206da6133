// GRPO's minibatches, computed from the samples of a rollout step. Pure functions, without actors.
#pragma once

#include <vector>

#include "algorithms/grpo.h"

namespace troupe::algorithms {

/// Applies the rewards and fills advantages and metrics. A sample whose reward failed is counted
/// (rewards/failed) and not trained on. `baselines`: rewards of the greedy answers, one per prompt,
/// for Estimator::remax.
void compute_advantages(RolloutBatch& samples, const GrpoConfig& config,
                        std::vector<double> baselines = {});

/// [N] rewards after shaping; NaN where one failed.
std::vector<double> shaped_rewards(const RolloutBatch& samples, const GrpoConfig& config);

/// epochs * minibatches updates. A minibatch holds whole groups, without the samples that have no
/// gradient (advantage 0 where the loss has no other term): constants, gradients and weights are
/// those with them, bit for bit; metrics are means over the others.
std::vector<engine::data::Experience> minibatches(const RolloutBatch& samples,
                                                  const GrpoConfig& config);

/// Tokens and samples of each of these updates, those without a gradient included.
std::vector<Processed> minibatch_sizes(const RolloutBatch& samples, const GrpoConfig& config,
                                       std::optional<double> epoch);

}  // namespace troupe::algorithms

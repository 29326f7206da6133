// The arithmetic of a GRPO round as pure functions: from samples and verdicts to updates. No actor
// in sight.
#pragma once

#include <vector>

#include "algorithms/grpo.h"

namespace troupe::algorithms {

/// Rewards and advantages. A sample whose reward failed is counted (rewards/failed) and not trained
/// on. `baselines`: rewards of the greedy answers, one a prompt, for Estimator::remax.
void settle(Sampled& sampled, std::vector<protocol::RewardResult> verdicts,
            const GrpoConfig& config, std::vector<double> baselines = {});

/// [N] what became of the rewards of samples that were drawn and judged.
std::vector<double> shaped_rewards(const std::vector<protocol::Completion>& drawn,
                                   const std::vector<protocol::RewardResult>& verdicts,
                                   const GrpoConfig& config);

/// epochs * minibatches updates; a minibatch holds whole groups, without the samples that could
/// change nothing (advantage 0 where the loss has no other term): constants, gradients and weights
/// are those with them, bit for bit; metrics are means over the others.
std::vector<engine::data::Experience> updates_of(const Sampled& sampled, const GrpoConfig& config);

}  // namespace troupe::algorithms

// Rewards that are missing because a reward program failed: more of them than allowed end the run
// before the batch is trained, so that the same command repeats it.
#pragma once

#include <vector>

#include "algorithms/rollout/samples.h"

namespace troupe::algorithms {

/// The failure of a batch of which too many samples lack a reward.
class RewardFailure : public Failure {
 public:
  using Failure::Failure;
};

/// Whether a sample lacks its reward because a program crashed, could not be started or answered
/// malformed, also at a second try. A timeout, too much memory and too much output are failures on
/// this completion, and rules and reward models fail on a text alone: these do not count.
bool program_failed(const protocol::RewardResult& result);

/// Throws RewardFailure if the program failed for more than `max_share` of the samples.
/// `completions` and `rewards` [N] are those of one rollout.
void check_reward_failures(const std::vector<protocol::Completion>& completions,
                           const std::vector<protocol::RewardResult>& rewards, double max_share);

}  // namespace troupe::algorithms

#include "algorithms/rollout/reward_failures.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {

bool program_failed(const protocol::RewardResult& result) {
  using protocol::FailureKind;
  return !result.reward && std::ranges::any_of(result.failure_kinds, [](FailureKind kind) {
    return kind == FailureKind::crash || kind == FailureKind::malformed;
  });
}

void check_reward_failures(const std::vector<protocol::Completion>& completions,
                           const std::vector<protocol::RewardResult>& rewards, double max_share) {
  check(completions.size() == rewards.size(), "check_reward_failures: one reward per sample");
  const auto failed = std::ranges::count_if(rewards, program_failed);
  if (static_cast<double>(failed) <= max_share * static_cast<double>(rewards.size())) return;
  const auto first = std::ranges::find_if(rewards, program_failed);
  const auto& sample = completions[static_cast<std::size_t>(first - rewards.begin())];
  throw RewardFailure(
      {Errc::closed,
       cat("the reward program failed on ", failed, " of ", rewards.size(),
           " samples, at the second try too, and rollout.max_reward_failures is ", max_share,
           "; first: sample ", sample.sample_id, ": ", first->failure,
           ". The batch was not trained. Repair the program and run the same command again, which "
           "repeats the batch; or allow the failures by a higher rollout.max_reward_failures "
           "(docs/rewards.md#failures)")});
}

}  // namespace troupe::algorithms

// Messages that verifiers and reward models answer: rewards of samples.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/json/json.h"

namespace troupe::actors::protocol {

/// One sample to reward. Rules read the texts and the answer, reward models the tokens, which are
/// the policy's: both share a tokenizer.
struct RewardRequest {
  std::string prompt, completion;
  Json answer;  ///< the row's ground truth, or null
  std::vector<std::int32_t> prompt_ids, completion_ids;
  /// For reward programs, where a rule has one: the row's columns but the prompt, an object, and
  /// the messages of a prompt that is a list of them. Otherwise null.
  Json row, messages;
  std::uint64_t prompt_id = 0;  ///< equal for the completions of one prompt
};
inline auto fields(RewardRequest& r) {
  return std::tie(r.prompt, r.completion, r.answer, r.prompt_ids, r.completion_ids, r.row,
                  r.messages, r.prompt_id);
}

/// Reward of one step of a completion, multiplied by the weight of its reward model.
struct StepReward {
  std::int32_t end = 0;  ///< index of the step's last token in Completion::ids
  double reward = 0;
};
inline auto fields(StepReward& s) {
  return std::tie(s.end, s.reward);
}

/// Reasons why a reward is missing. All but `other` are failures of a reward program
/// (docs/rewards.md).
enum class FailureKind : std::uint8_t { other, timeout, crash, malformed, flood, memory };
constexpr std::array<std::string_view, 6> names_of(FailureKind) {
  return {"other", "timeout", "crash", "malformed", "flood", "memory"};
}

/// A failure is a result: `reward` is then absent, `failure` is the reason, and the sample is
/// counted, never scored 0 in silence.
struct RewardResult {
  std::optional<double> reward;
  std::vector<std::pair<std::string, double>> parts;  ///< by rule or model, before weighting
  std::string failure;
  std::vector<StepReward> steps;           ///< process rewards, in the order of their ends
  double from_steps = 0;                   ///< the share of `reward` that aggregates these steps
  std::vector<FailureKind> failure_kinds;  ///< one for each rule or model that failed
  /// No rule applies to the sample, and none failed: what others answer is the reward.
  bool not_applicable = false;
};
inline auto fields(RewardResult& r) {
  return std::tie(r.reward, r.parts, r.failure, r.steps, r.from_steps, r.failure_kinds,
                  r.not_applicable);
}

/// Replies come in the order of `requests`. The reward is the weighted sum of the parts.
struct ComputeRewards {
  using Reply = std::vector<RewardResult>;
  static constexpr std::string_view name = "compute_rewards";
  std::vector<RewardRequest> requests;
};
inline auto fields(ComputeRewards& m) {
  return std::tie(m.requests);
}

}  // namespace troupe::actors::protocol

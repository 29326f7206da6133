// Token rewards: from the rewards of a sample to a reward for each of its tokens. Pure functions,
// in float64.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/json/fields.h"

namespace troupe::algorithms {

/// Token that receives the score of a whole sample:
///   last       the last trained token (verl, OpenRLHF, MindSpeed-RL)
///   after_end  one step later, the state after the end token; the last token if the sample has the
///              maximum length (TRL; MindSpeed-LLM: first end token + 1, clamped)
enum class ScorePlace { last, after_end };
constexpr std::array<std::string_view, 2> names_of(ScorePlace) {
  return {"last", "after_end"};
}

/// Scaling of a sample's score before it is assigned to a token.
struct ScoreShape {
  double scale = 1;
  /// Scores are clipped to +-clip after scaling; 0: no clipping. OpenRLHF 10, AReaL 20.
  double clip = 0;
  /// Subtracted after clipping from the score of a sample without an end token.
  double missing_eos_penalty = 0;

  static void each_field(auto& self, auto&& field) {
    field("reward_scale", self.scale, "rewards are multiplied by this");
    field(
        "reward_clip", self.clip, at_least_0,
        "rewards are clipped to plus or minus this after scaling (OpenRLHF 10, AReaL 20); 0: off");
    field("missing_eos_penalty", self.missing_eos_penalty, at_least_0,
          "subtracted from the reward of a sample without an end token");
  }
};
double shaped(double score, bool ended, const ScoreShape& shape);

/// Credit assignment of process rewards:
///   sum  unchanged: the return of a token is the sum of the rewards from its step on
///   min  weighted by softmax(-r / temperature) over the sample's steps: their sum is close to the
///        reward of the worst step, and only the worst step is penalized (PURE, Cheng et al. 2025,
///        arXiv:2504.15275)
enum class Credit { sum, min };
constexpr std::array<std::string_view, 2> names_of(Credit) {
  return {"sum", "min"};
}

/// [steps] -> [steps]. temperature > 0 (PURE: 0.1); unused by sum.
std::vector<double> credited(std::span<const double> steps, Credit credit, double temperature);

/// Adds the reward of each step to that of its last trained token at or before `ends[k]` (an end
/// between steps, which is not trained on, counts for the token sampled before it). Returns the
/// number of steps without such a token, which are dropped. mask, rewards: [L].
std::int64_t add_steps(std::span<double> rewards, std::span<const float> mask,
                       std::span<const std::int32_t> ends, std::span<const double> steps);

/// Index of the last token with a nonzero mask, or -1.
std::int64_t last_trained(std::span<const float> mask);

// Shaping of a sample's reward before samples are compared. Pure functions, in float64.
struct Shaping {
  /// Soft overlong punishment (DAPO, arXiv:2503.14476 sec. 3.4): the penalty of an answer longer
  /// than allowed - buffer is (length - (allowed - buffer)) / buffer * factor; capped: at most
  /// `factor` (OpenRLHF, MindSpeed), else unbounded (verl, AReaL).
  double overlong_buffer = 0;  ///< tokens; 0: none
  double overlong_factor = 1;
  bool overlong_capped = true;
  /// Stop properly (ProRL, in OpenRLHF's form): the reward of a truncated answer is multiplied by
  /// this; a negative value replaces the reward.
  double truncated_scale = 1;
  ScoreShape score;  ///< applied last

  static void each_field(auto& self, auto&& field) {
    field("overlong_buffer", self.overlong_buffer, at_least_0,
          "soft overlong penalty (DAPO): penalize answers that come within this many tokens of "
          "rollout.max_new_tokens; 0: off");
    field("overlong_factor", self.overlong_factor, at_least_0,
          "overlong penalty of an answer of maximum length");
    field("overlong_capped", self.overlong_capped,
          "cap the overlong penalty at that value (OpenRLHF, MindSpeed)");
    field("truncated_scale", self.truncated_scale, Range{-100, 1},
          "rewards of truncated samples are multiplied by this; negative: replaced by it");
    ScoreShape::each_field(self.score, field);
  }
};

/// Returns 0 or less. Lengths in tokens.
double overlong_penalty(double length, double allowed, const Shaping& shaping);
/// Reward of an answer of `length` tokens, `truncated` or ended by an end token. NaN stays NaN.
double shaped_reward(double reward, double length, double allowed, bool truncated,
                     const Shaping& shaping);

}  // namespace troupe::algorithms

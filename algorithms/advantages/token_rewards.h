// From the rewards of a sample to a reward for each of its tokens. Pure functions, in float64.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/fields.h"

namespace troupe::algorithms {

/// Where the score of a whole sample is given:
///   last       at its last trained token (verl, OpenRLHF, MindSpeed-RL)
///   after_end  one step later, for the state after the end token; at the last token where the
///   sample has no room for one more, because it
///              is as long as allowed (TRL; MindSpeed-LLM: first end token + 1, clamped)
enum class ScorePlace { last, after_end };
constexpr std::array<std::string_view, 2> names_of(ScorePlace) {
  return {"last", "after_end"};
}

/// What becomes of a sample's score before it is placed.
struct ScoreShape {
  double scale = 1;
  double clip = 0;  ///< held within +-clip after scaling; 0: not. OpenRLHF 10, AReaL 20
  double missing_eos_penalty =
      0;  ///< taken from the score of a sample that did not end by itself, after clipping

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

/// How the rewards of a sample's steps become rewards at their ends:
///   sum  as they are: the return of a token is what the steps from it on are worth together
///   min  weighed by softmax(-r / temperature) over the sample's steps, so that they sum up to
///   nearly the worst step's reward and only a
///        step that is the worst pays (PURE, Cheng et al. 2025, arXiv:2504.15275)
enum class Credit { sum, min };
constexpr std::array<std::string_view, 2> names_of(Credit) {
  return {"sum", "min"};
}

/// [steps] -> [steps]. temperature > 0 (PURE: 0.1); unused by sum.
std::vector<double> credited(std::span<const double> steps, Credit credit, double temperature);

/// rewards[t] += the step's, at its last trained token at or before `ends[k]` (an end between
/// steps, that is not trained on, counts for the token that was chosen before it). A step without
/// one is dropped; the reply is how many were. mask, rewards: [L].
std::int64_t add_steps(std::span<double> rewards, std::span<const float> mask,
                       std::span<const std::int32_t> ends, std::span<const double> steps);

/// The last token with a mask other than 0, or -1.
std::int64_t last_trained(std::span<const float> mask);

// Shaping: what becomes of a sample's reward before samples are compared. Pure functions, in
// float64.
struct Shaping {
  /// Soft overlong punishment (DAPO, arXiv:2503.14476 sec. 3.4): an answer that is longer than
  /// allowed - buffer loses (its length - (allowed - buffer)) / buffer * factor; capped: at most
  /// `factor` (OpenRLHF, MindSpeed), else as far as it goes (verl, AReaL).
  double overlong_buffer = 0;  ///< tokens; 0: none
  double overlong_factor = 1;
  bool overlong_capped = true;
  /// Stop properly (ProRL, as OpenRLHF has it): the reward of an answer that was cut is multiplied
  /// by it; a negative one replaces the reward.
  double truncated_scale = 1;
  ScoreShape score;  ///< then scaled, clipped, and what a missing end costs

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

/// 0 or less. Lengths in tokens.
double overlong_penalty(double length, double allowed, const Shaping& shaping);
/// Of an answer of `length` tokens that was cut (`truncated`) or ended by itself. Not-a-number
/// stays.
double shaped_reward(double reward, double length, double allowed, bool truncated,
                     const Shaping& shaping);

}  // namespace troupe::algorithms

// Generalized advantage estimation (Schulman et al. 2016, arXiv:1506.02438). Pure functions over
// one sequence, in float64.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/json/fields.h"

namespace troupe::algorithms {

/// Treatment of an untrained token (a tool's output between two answers) in the recursion; its
/// reward is ignored:
///   carry  skipped: value and advantage of the next trained token pass through unchanged (verl,
///          AReaL, NeMo-RL)
///   zero   a step of the episode with value 0 and reward 0 (OpenRLHF)
enum class Untrained { carry, zero };
constexpr std::array<std::string_view, 2> names_of(Untrained) {
  return {"carry", "zero"};
}

/// The state after the last token.
struct AfterEnd {
  /// Value of that state: 0 at the end of an episode; a critic's estimate for a truncated sequence.
  double value = 0;
  /// Reward of that state, one step after the last token's (the place of the score in TRL and
  /// MindSpeed-LLM).
  double reward = 0;
  /// `reward` is the last of the episode: the state counts as one more step, the final one.
  bool ends = false;
};

struct Gae {
  std::vector<double> advantages;  ///< [L]
  std::vector<double> returns;     ///< [L] advantage + value: training targets of the critic
};

struct GaeOptions {
  double gamma = 1, lambda = 0.95;
  Untrained untrained = Untrained::carry;

  static void each_field(auto& self, auto&& field) {
    field("gamma", self.gamma, from_0_to_1, "discount factor per token");
    field("lambda", self.lambda, from_0_to_1, "GAE lambda");
    field("untrained", self.untrained,
          "tokens inside a sample that are not trained on: skipped (verl, AReaL, NeMo-RL), or "
          "steps of value zero (OpenRLHF)");
  }
};

/// Computes the recursion
///   delta_t = r_t + gamma V_{t+1} - V_t
///   A_t = delta_t + gamma lambda A_{t+1}
///   returns_t = A_t + V_t
/// for rewards, values and mask [L], indexed by token; V_t is the value of the state in which token
/// t was sampled.
Gae gae(std::span<const double> rewards, std::span<const double> values,
        std::span<const float> mask, const GaeOptions& options, const AfterEnd& beyond = {});

}  // namespace troupe::algorithms

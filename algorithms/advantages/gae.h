// Generalized advantage estimation (Schulman et al. 2016, arXiv:1506.02438). Pure functions over
// one sequence, in float64.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/fields.h"

namespace troupe::algorithms {

/// What a token that is not trained on (a tool's output between two answers) does to the recursion:
///   carry  it is stepped over: value and advantage of the next trained token pass through
///   unchanged (verl, AReaL, NeMo-RL) zero   it stays a step of the episode, of value 0 and reward
///   0 (OpenRLHF)
/// A reward at such a token is not seen by either.
enum class Untrained { carry, zero };
constexpr std::array<std::string_view, 2> names_of(Untrained) {
  return {"carry", "zero"};
}

/// What lies behind the last token.
struct AfterEnd {
  double value = 0;   ///< of the state after it: 0 where the episode ended; a critic's estimate
                      ///< bootstraps a sequence that was cut
  double reward = 0;  ///< given for that state, one step after the last token's (TRL's and
                      ///< MindSpeed-LLM's place of the score)
  bool ends = false;  ///< `reward` is the last of the episode: the state counts as one more step,
                      ///< after which nothing comes
};

struct Gae {
  std::vector<double> advantages;  ///< [L]
  std::vector<double> returns;     ///< [L] advantage + value: what the critic is trained towards
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

///   delta_t = r_t + gamma V_{t+1} - V_t,   A_t = delta_t + gamma lambda A_{t+1},   returns_t = A_t
///   + V_t
/// rewards, values, mask: [L], indexed by token; V_t is the value of the state that token t was
/// chosen in.
Gae gae(std::span<const double> rewards, std::span<const double> values,
        std::span<const float> mask, const GaeOptions& options, const AfterEnd& beyond = {});

}  // namespace troupe::algorithms

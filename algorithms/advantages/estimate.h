// Estimating advantages: from the rewards of a round's samples to one number for each of their
// tokens, by the rule of an algorithm.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/advantages/advantage.h"
#include "algorithms/advantages/whiten.h"
#include "algorithms/losses/kl.h"
#include "engine/data/experience.h"

namespace troupe::algorithms {

/// advantage.h has the equations:
///   group         distance to the group's mean, divided as `scale` says (GRPO; none: Dr. GRPO,
///   REINFORCE++-baseline before whitening) rloo          distance to the mean of the group's
///   others;  loo_scaled: divided by their deviation (NeMo-RL) reinforce_pp  no group: what a
///   token's answer still earns (rewards to go, discounted by gamma), arXiv:2501.03262 remax
///   distance to the greedy answer's reward pass_at_k, opo, gpg, max_rl
enum class Estimator { group, rloo, loo_scaled, reinforce_pp, remax, pass_at_k, opo, gpg, max_rl };
constexpr std::array<std::string_view, 9> names_of(Estimator) {
  return {"group",     "rloo", "loo_scaled", "reinforce_pp", "remax",
          "pass_at_k", "opo",  "gpg",        "max_rl"};
}

/// What is done to all advantages of the round at last: nothing, (A - mean) / (std + eps) over
/// samples (TRL's RLOO with normalize_advantages), or whitening over trained tokens (REINFORCE++;
/// MindSpeed-LLM's GRPO).
enum class Normalise { none, samples, tokens };
constexpr std::array<std::string_view, 3> names_of(Normalise) {
  return {"none", "samples", "tokens"};
}

struct AdvantageConfig {
  Estimator estimator = Estimator::group;
  GroupScale scale = GroupScale::group;
  double eps = 1e-4;  ///< TRL 1e-4, verl and MindSpeed-RL 1e-6, MindSpeed-LLM 1e-8, OpenRLHF 1e-9
  Normalise normalise = Normalise::none;
  Variance variance = Variance::bessel;  ///< of `tokens`: OpenRLHF biased
  double gamma = 1;                      ///< reinforce_pp
  /// GDPO: each of these reward parts is scaled within its group before the weighted sum; empty:
  /// the sum is (TRL: sum_then_normalize).
  std::vector<std::pair<std::string, double>> parts;
  /// KL from the reference, taken from the reward: beta times the estimate at each token for
  /// reinforce_pp, its sum over the answer for the others (TRL's RLOO: k1). 0: none.
  double reward_beta = 0;
  KlEstimator reward_kl = KlEstimator::k1;
  KlClamp reward_kl_clamp = KlClamp::none;
};

/// What is known of the samples besides the batch.
struct Judged {
  std::vector<double> rewards;             ///< [N] shaped; not-a-number where one failed
  std::vector<std::vector<double>> parts;  ///< [K][N] of AdvantageConfig::parts
  std::vector<double> baselines;           ///< [N / group] of the greedy answers; remax only
};

/// [T] estimates of the KL from the reference at the trained tokens; 0 elsewhere. Reads old_logp
/// (what sampled) and reference_logp.
std::vector<double> token_kl(const engine::data::Experience& b, KlEstimator estimator,
                             KlClamp clamp);

/// Fills b.advantage. The statistics tell of the rewards as they came out of the KL term.
Advantages estimate(engine::data::Experience& b, int group, Judged judged,
                    const AdvantageConfig& config);

}  // namespace troupe::algorithms

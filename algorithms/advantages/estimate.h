// Advantage estimation: from the rewards of the samples of a rollout step to an advantage for each
// of their tokens.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/advantages/advantage.h"
#include "algorithms/advantages/whiten.h"
#include "algorithms/losses/kl.h"
#include "engine/base/json/fields.h"
#include "engine/data/experience.h"

namespace troupe::algorithms {

/// Estimators; advantage.h has the equations:
///   group         reward minus the group's mean, divided as `scale` defines (GRPO; none: Dr. GRPO,
///                 REINFORCE++-baseline before whitening)
///   rloo          reward minus the mean of the group's others
///   loo_scaled    rloo divided by the standard deviation of the others (NeMo-RL)
///   reinforce_pp  without groups: the rewards to go of each token, discounted by gamma
///                 (arXiv:2501.03262)
///   remax         reward minus the greedy answer's reward
///   pass_at_k, opo, gpg, max_rl
enum class Estimator { group, rloo, loo_scaled, reinforce_pp, remax, pass_at_k, opo, gpg, max_rl };
constexpr std::array<std::string_view, 9> names_of(Estimator) {
  return {"group",     "rloo", "loo_scaled", "reinforce_pp", "remax",
          "pass_at_k", "opo",  "gpg",        "max_rl"};
}

/// Final normalization of all advantages of a rollout step: none, (A - mean) / (std + eps) over
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
  Variance variance = Variance::bessel;  ///< for `tokens`; OpenRLHF: biased
  double gamma = 1;                      ///< reinforce_pp only
  /// GDPO: reward parts that are scaled separately within their group before the weighted sum;
  /// empty: the sum is scaled (TRL: sum_then_normalize).
  std::vector<std::pair<std::string, double>> parts;
  /// Coefficient of the KL penalty in the reward: the estimate of each token for reinforce_pp, its
  /// sum over the answer for the others (TRL's RLOO: k1). 0: none.
  double reward_beta = 0;
  KlEstimator reward_kl = KlEstimator::k1;
  KlClamp reward_kl_clamp = KlClamp::none;

  static void each_field(auto& self, auto&& field) {
    field("estimator", self.estimator,
          "advantage: reward minus group mean (group), minus the mean of the others (rloo; "
          "loo_scaled divides by their standard deviation), reward-to-go per token "
          "(reinforce_pp), minus the greedy answer's reward (remax), lead of the best sample "
          "(pass_at_k), minus the length-weighted group mean (opo), gpg, max_rl");
    field("scale_rewards", self.scale,
          "estimator group: divide advantages by the standard deviation of the group, of the "
          "batch, or not at all");
    field("advantage_eps", self.eps, at_least_0,
          "added to the standard deviation before dividing (TRL 1e-4, verl 1e-6, OpenRLHF 1e-9)");
    field("normalize_advantages", self.normalise,
          "finally normalize advantages to mean 0 and standard deviation 1, over samples or over "
          "tokens (REINFORCE++)");
    field("variance", self.variance,
          "normalize_advantages tokens: variance with n - 1, or with n (OpenRLHF)");
    field("gamma", self.gamma, from_0_to_1, "estimator reinforce_pp: discount factor per token");
    field("reward_beta", self.reward_beta, at_least_0,
          "coefficient of the KL penalty in the reward; 0: none");
    field("reward_kl", self.reward_kl, "KL estimator of the reward penalty");
  }
};

/// Rewards of the samples of a batch.
struct RewardInputs {
  std::vector<double> rewards;             ///< [N] after shaping; NaN where one failed
  std::vector<std::vector<double>> parts;  ///< [K][N] of AdvantageConfig::parts
  std::vector<double> baselines;           ///< [N / group] of the greedy answers; remax only
};

/// [T] KL estimates to the reference at the trained tokens; 0 elsewhere. Reads old_logp (the
/// sampling policy) and reference_logp.
std::vector<double> token_kl(const engine::data::Experience& b, KlEstimator estimator,
                             KlClamp clamp);

/// Fills b.advantage. The statistics are those of the rewards after the KL penalty.
Advantages estimate(engine::data::Experience& b, int group, RewardInputs inputs,
                    const AdvantageConfig& config);

}  // namespace troupe::algorithms

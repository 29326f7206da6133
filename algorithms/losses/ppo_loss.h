// Proximal policy optimization (Schulman et al. 2017, arXiv:1707.06347 eq. 7), with later variants
// of clipping, clamping and averaging.
//
//   rho  = pi / pi_old
//   l_t  = - c_t min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A)
//          + kl_coef KL_t - entropy_coef H_t
//   c_t  = the importance weight of an off-policy sample, and the filters (correction.h)
//   L    = the average of l_t over the trained tokens, by `aggregation`
#pragma once

#include "algorithms/losses/averaging.h"
#include "algorithms/losses/correction.h"
#include "algorithms/losses/kl.h"
#include "algorithms/losses/surrogate.h"
#include "engine/loss/loss.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// Reads old_logp, advantage, rollout_logp for a correction (without it every weight is 1, unless
/// the proximal policy is approximated: old_logp is then that of the rollouts), and
/// reference_logp if kl_coef is not 0. Without old_logp the ratio is
/// exactly 1 and its gradient that of log pi: the first update after sampling. Metrics, means over
/// trained tokens, with the names of TRL and verl: loss/policy_avg (surrogate only),
/// policy/clipfrac_avg, policy/approxkl_avg (half the squared log-ratio), policy/entropy_avg,
/// val/ratio, actor/ppo_kl, actor/kl_loss, and those of the surrogate
/// and of the correction.
struct PpoLoss {
  static constexpr std::string_view name = "ppo";

  Surrogate surrogate;
  Aggregation aggregation = Aggregation::token_local;
  double log_ratio_limit = 0;  ///< clamp of the log-ratio to +- this (verl: 20); 0: none
  double kl_coef = 0;          ///< of the KL term in the loss; 0 if the penalty is in the reward
  KlEstimator kl = KlEstimator::k3;
  KlClamp kl_clamp = KlClamp::none;
  double entropy_coef = 0;
  /// Tokens are sampled from those that were left (Experience::sampling_mask): the entropy over the
  /// whole vocabulary is reported, too.
  bool masked = false;
  Correction correction;
  Proximal proximal = Proximal::given;
  /// Version of the trained weights, as in Experience::version; read unless `proximal` is given.
  double version = 0;
  /// Sampling temperature: log-probabilities are those of the sampled distribution.
  double temperature = 1;

  /// Settings of the section `ppo` that belong to the loss; PpoConfig has those of the KL term.
  static void each_setting(auto& self, auto&& field) {
    Surrogate::each_clip_field(self.surrogate, field);
    field("log_ratio_limit", self.log_ratio_limit, at_least_0,
          "clamp the log-ratio to plus or minus this (verl: 20); 0: no clamp");
    field("aggregation", self.aggregation, aggregation_doc);
    field("entropy_coef", self.entropy_coef, Range{-10, 10}, "entropy bonus coefficient");
    Correction::each_field(self.correction, field);
    field("proximal", self.proximal, proximal_doc);
  }
  static void each_field(auto& self, auto&& field) {
    Surrogate::each_field(self.surrogate, field);
    field("aggregation", self.aggregation);
    field("log_ratio_limit", self.log_ratio_limit, at_least_0);
    field("kl_coef", self.kl_coef, at_least_0);
    field("kl", self.kl);
    field("kl_clamp", self.kl_clamp);
    field("entropy_coef", self.entropy_coef);
    Correction::each_field(self.correction, field);
    field("proximal", self.proximal);
    field("version", self.version);
    field("temperature", self.temperature);
    field("masked", self.masked);
  }
  engine::loss::Needs needs() const {
    return {.entropy = true,
            .whole_entropy = masked,
            .reference = kl_coef != 0,
            .temperature = temperature,
            .whole_batch = surrogate.chooses_tokens()};
  }
  Result<> validate() const;
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;
};

}  // namespace troupe::algorithms

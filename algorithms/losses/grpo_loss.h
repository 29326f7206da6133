// Policy-gradient losses without a critic: Group Relative Policy Optimization (Shao et al. 2024,
// arXiv:2402.03300, sec. 4.1) and its variants, composed from their parts.
//
//   l_t = c_t surrogate(rho_t, A_t) + beta KL_t - entropy_coef H_t
//   L   = the average of l_t over the trained tokens, by `aggregation`
//
// Parts:
//   surrogate.h   clip, CISPO, SAPO, VESPO, GMPO, DRO, DPPO, Clip-Cov, KL-Cov
//   ratio.h       rho of a token or a sequence
//   correction.h  c_t, the importance weight of an off-policy sample, and the filters
//   kl.h          KL_t
//   averaging.h   aggregation
#pragma once

#include "algorithms/losses/averaging.h"
#include "algorithms/losses/correction.h"
#include "algorithms/losses/kl.h"
#include "algorithms/losses/ratio.h"
#include "algorithms/losses/surrogate.h"
#include "engine/loss/loss.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// Reads old_logp, advantage, rollout_logp for a correction (old_logp where it is absent),
/// reference_logp when beta is not 0. Without old_logp the ratio is exactly 1 and its gradient that
/// of log pi: the first update after sampling. Metrics, means over trained tokens: kl (as in the
/// loss), entropy, entropy_whole_vocabulary, ppo_kl (mean of log pi_old - log pi), policy_loss,
/// ratio/{mean,min,max}, and those of the parts.
struct GrpoLoss {
  static constexpr std::string_view name = "grpo";
  using Aggregation = algorithms::Aggregation;

  Surrogate surrogate;
  RatioLevel ratio = RatioLevel::token;
  double log_ratio_limit = 0;  ///< clamp of log rho (ratio.h); 0: none
  double beta = 0;
  KlEstimator kl = KlEstimator::k3;
  KlClamp kl_clamp = KlClamp::none;
  /// Multiplies KL_t by rho_t, differentiably (TRL's use_bias_correction_kl; DeepSeek-V3.2); false:
  /// the paper's KL_t.
  bool kl_times_ratio = true;
  double entropy_coef = 0;
  /// Tokens are sampled from those that were left (Experience::sampling_mask): the entropy over the
  /// whole vocabulary is reported, too.
  bool masked = false;
  /// Fraction of tokens, those of highest entropy, that enter the surrogate; 1: all.
  double top_entropy_quantile = 1;
  /// DeepSeek-V3.2's mask of samples with a negative advantage: its threshold in nats; 0: none.
  double off_policy_mask = 0;
  Correction correction;
  Proximal proximal = Proximal::given;
  /// Version of the trained weights, as in Experience::version; read unless `proximal` is given.
  double version = 0;
  Aggregation aggregation = Aggregation::token_global;
  /// Sampling temperature: log-probabilities are those of the sampled distribution.
  double temperature = 1;
  bool report_entropy = true;

  static void each_field(auto& self, auto&& field) {
    Surrogate::each_field(self.surrogate, field);
    field("ratio", self.ratio,
          "importance ratio per token, per sequence (its geometric mean; GSPO), per sequence with "
          "token-level gradient (GSPO-token), or of the whole answer (RLOO)");
    field("log_ratio_limit", self.log_ratio_limit, at_least_0,
          "clamp the log-ratio to plus or minus this (verl: 20); 0: no clamp");
    field("beta", self.beta, at_least_0, "KL coefficient in the loss; 0: no KL term");
    field("kl", self.kl, kl_doc);
    field("kl_clamp", self.kl_clamp, kl_clamp_doc);
    field("kl_times_ratio", self.kl_times_ratio,
          "multiply the KL estimate by the importance ratio");
    field("entropy_coef", self.entropy_coef, Range{-10, 10}, "entropy bonus coefficient");
    field("top_entropy_quantile", self.top_entropy_quantile, above_0_to_1,
          "train only on this fraction of tokens with the highest entropy (0.2 is common); 1: all "
          "tokens");
    field("off_policy_mask", self.off_policy_mask, at_least_0,
          "mask samples with A < 0 whose mean log-ratio of rollout to policy exceeds this, in nats "
          "per token; 0: off");
    Correction::each_field(self.correction, field);
    field("proximal", self.proximal, proximal_doc);
    field("version", self.version);
    field("aggregation", self.aggregation, aggregation_doc);
    field("temperature", self.temperature);
    field("masked", self.masked);
    field("report_entropy", self.report_entropy);
  }
  engine::loss::Needs needs() const {
    return {.entropy = report_entropy || entropy_coef != 0 || top_entropy_quantile < 1,
            .whole_entropy = masked && report_entropy,
            .reference = beta != 0,
            .temperature = temperature,
            .whole_batch = top_entropy_quantile < 1 || surrogate.chooses_tokens()};
  }
  Result<> validate() const;
  /// True if a sample with advantage 0 has neither loss nor gradient and does not affect other
  /// samples: it can be left out of the batch.
  bool advantage_is_all() const;
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;
};

}  // namespace troupe::algorithms

// Policy-gradient surrogates: the loss of one token before KL, entropy and averaging.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/fields.h"
#include "engine/data/experience.h"
#include "engine/loss/report.h"
#include "engine/loss/tape.h"

namespace troupe::algorithms {

/// Inputs of a surrogate, [T] each. log_weight: log of the importance correction (correction.h),
/// which VESPO includes in its own weight.
struct PolicyTerms {
  engine::loss::Expr logp, log_ratio, advantage;
  std::vector<double> log_weight;
};

enum class SurrogateKind {
  clip,
  cispo,
  cispo_band,
  sapo,
  vespo,
  gmpo,
  dro,
  dppo_tv,
  clip_cov,
  kl_cov
};
constexpr std::array<std::string_view, 10> names_of(SurrogateKind) {
  return {"clip", "cispo", "cispo_band", "sapo",     "vespo",
          "gmpo", "dro",   "dppo_tv",    "clip_cov", "kl_cov"};
}

/// The policy-gradient surrogates, with rho = exp(log_ratio), the advantage A, and sg() for a
/// constant (stop gradient):
///   clip        -min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A)
///               PPO, arXiv:1707.06347; unequal bounds: DAPO, arXiv:2503.14476.
///               delta: the first rho is at most delta (INTELLECT-2, arXiv:2505.07291; TRL).
///               dual_clip: at most -dual_clip A where A < 0 (Ye et al. 2020, arXiv:1912.09729;
///               verl's default is 3).
///   cispo       -sg(min(rho, clip_high)) A log pi
///               MiniMax-M1, arXiv:2506.13585, in TRL's form (recommended clip_high: 5).
///   cispo_band  -sg(clip(rho, 1 - clip_low, 1 + clip_high)) A log pi
///               The form of verl, NeMo-RL and slime.
///   sapo        -4 / tau sigmoid(tau (rho - 1)) A, where tau depends on the sign of A
///               arXiv:2511.20347.
///   vespo       -sg(phi) A log pi, phi = e^lambda w^k e^(-lambda w), where w is the ratio of the
///               whole answer, and k and lambda depend on the sign of A
///               arXiv:2602.10693, in TRL's form.
///   gmpo        -A exp(mean over the answer of s min(s x, s clip(x, -clip_low, clip_high))), with
///               x = log_ratio and s = sign(A)
///               arXiv:2507.20673.
///   dro         -(A log pi - dro_beta / 2 x^2)
///               arXiv:2405.19107, in verl's form.
///   dppo_tv     -sg(min(rho, 20)) A log pi where pi - pi_old <= clip_high (A > 0) or
///               pi - pi_old >= -clip_low (otherwise); 0 elsewhere
///               Binary-TV, arXiv:2602.04879, in verl's form.
///   clip_cov    clip, but 0 for a fraction cov_ratio of the tokens, drawn from unclipped tokens
///               whose covariance of A and log pi is between cov_low and cov_high
///               arXiv:2505.22617, in verl's form.
///   kl_cov      -rho A, plus cov_kl |x| for the fraction cov_ratio of tokens with the greatest
///               covariances
///               arXiv:2505.22617.
struct Surrogate {
  SurrogateKind kind = SurrogateKind::clip;
  double clip_low = 0.2, clip_high = 0.2;
  double delta = 0;      ///< 0: none
  double dual_clip = 0;  ///< 0: none
  double sapo_temperature_pos = 1, sapo_temperature_neg = 1.05;
  double vespo_k_pos = 2, vespo_lambda_pos = 3, vespo_k_neg = 3, vespo_lambda_neg = 2;
  double dro_beta = 0.1;
  double cov_ratio = 2e-4;  ///< fraction of the update's trained tokens, at least one token
  double cov_low = 1, cov_high = 5;  ///< clip_cov
  double cov_kl = 1;                 ///< kl_cov

  /// Clipping settings, which PPO shares.
  static void each_clip_field(auto& self, auto&& field) {
    field("clip_low", self.clip_low, from_0_to_1,
          "lower clipping range: ratios are clipped below 1 - clip_low (dppo_tv: the largest "
          "allowed drop of a token's probability)");
    field("clip_high", self.clip_high, at_least_0,
          "upper clipping range: ratios are clipped above 1 + clip_high (cispo: above clip_high "
          "itself; dppo_tv: the largest allowed rise of a token's probability)");
    field("dual_clip", self.dual_clip, at_least_0,
          "dual clip: where A < 0 the loss is at most this times |A| (verl: 3); 0: off");
  }
  static void each_field(auto& self, auto&& field) {
    field("policy_loss", self.kind,
          "policy-gradient surrogate: PPO's clip, CISPO with an upper bound (TRL) or a band "
          "(verl), SAPO, VESPO, GMPO, DRO, DPPO's total-variation mask, Clip-Cov, KL-Cov");
    each_clip_field(self, field);
    field("delta", self.delta, at_least_0,
          "upper bound of the unclipped importance ratio (two-sided clipping); 0: none");
    field("sapo_temperature_pos", self.sapo_temperature_pos, above_0,
          "SAPO: gate temperature where A > 0");
    field("sapo_temperature_neg", self.sapo_temperature_neg, above_0,
          "SAPO: gate temperature where A <= 0");
    field("vespo_k_pos", self.vespo_k_pos, at_least_0, "VESPO: exponent of the ratio where A >= 0");
    field("vespo_lambda_pos", self.vespo_lambda_pos, above_0, "VESPO: decay rate where A >= 0");
    field("vespo_k_neg", self.vespo_k_neg, at_least_0, "VESPO: exponent of the ratio where A < 0");
    field("vespo_lambda_neg", self.vespo_lambda_neg, above_0, "VESPO: decay rate where A < 0");
    field("dro_beta", self.dro_beta, at_least_0, "DRO: weight of the squared log-ratio");
    field("cov_ratio", self.cov_ratio, above_0_to_1,
          "clip_cov, kl_cov: fraction of the update's tokens that is masked or penalized");
    field("cov_low", self.cov_low,
          "clip_cov: lower bound of the covariance of advantage and log-probability for masking");
    field("cov_high", self.cov_high, "clip_cov: upper bound of that covariance");
    field("cov_kl", self.cov_kl, at_least_0,
          "kl_cov: weight of |log ratio| at the tokens with the greatest covariance");
  }
  /// `section` ("grpo", "ppo") starts every message.
  Result<> validate(std::string_view section) const;
  /// True if tokens are selected among those of the whole update.
  bool chooses_tokens() const {
    return kind == SurrogateKind::clip_cov || kind == SurrogateKind::kl_cov;
  }
  /// True if a token with advantage 0 has neither loss nor gradient and does not affect other
  /// tokens.
  bool advantage_is_all() const { return kind != SurrogateKind::dro && !chooses_tokens(); }
  /// True if log_ratio must be that of single tokens.
  bool wants_token_ratio() const {
    return kind == SurrogateKind::vespo || kind == SurrogateKind::gmpo ||
           kind == SurrogateKind::dro || kind == SurrogateKind::dppo_tv || chooses_tokens();
  }
  /// [T]. Metrics: clip_ratio/{low,high,region,dual,cov}_mean, cispo_clip_ratio,
  /// vespo/phi_seq_mean, means over trained tokens (vespo: answers).
  engine::loss::Expr operator()(const PolicyTerms& now, const engine::data::Experience& b,
                                engine::loss::Report& report) const;

 private:
  engine::loss::Expr clipped(const PolicyTerms& now, const engine::data::Experience& b,
                             engine::loss::Report& report) const;
  engine::loss::Expr cispo(const PolicyTerms& now, const engine::data::Experience& b,
                           engine::loss::Report& report) const;
  engine::loss::Expr vespo(const PolicyTerms& now, const engine::data::Experience& b,
                           engine::loss::Report& report) const;
  engine::loss::Expr gmpo(const PolicyTerms& now, const engine::data::Experience& b) const;
  engine::loss::Expr dppo_tv(const PolicyTerms& now, const engine::data::Experience& b,
                             engine::loss::Report& report) const;
  engine::loss::Expr clip_cov(const PolicyTerms& now, const engine::data::Experience& b,
                              engine::loss::Report& report) const;
  engine::loss::Expr kl_cov(const PolicyTerms& now, const engine::data::Experience& b) const;
};

}  // namespace troupe::algorithms

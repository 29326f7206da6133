// Direct Preference Optimization (Rafailov et al. 2023, arXiv:2305.18290, eq. 7) and losses with
// the same inputs.
//
//   c = log pi(y_w|x) / pi_ref(y_w|x), r = the same for y_l, delta = c - r; sums over answer tokens
//   sigmoid   L = - log sigmoid(beta delta)
//
// The other losses are in per_pair() in dpo_loss.cpp, one line each, with their sources. Sequence
// 2k is y_w (chosen), sequence 2k+1 is y_l (rejected).
#pragma once

#include <array>

#include "algorithms/losses/pairs.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// Losses that tools define differently under one name: `ipo` divides log-ratios by the answers'
/// lengths (TRL from 0.24, MindSpeed), `ipo_sum` does not (the paper, OpenRLHF, older TRL). Label
/// smoothing: `cdpo` (Mitchell 2023, OpenRLHF, MindSpeed) and `robust` (Chowdhury et al. 2024);
/// TRL's `sigmoid` ignores it, so unused smoothing is rejected. `kto_pair` (MindSpeed, older TRL):
/// each half of the pairs is the KL estimate of the other half. `sft` is the likelihood of the
/// chosen answers.
enum class DpoLossKind {
  sigmoid,
  cdpo,
  robust,
  hinge,
  ipo,
  ipo_sum,
  exo_pair,
  nca_pair,
  bco_pair,
  sppo_hard,
  aot,
  aot_unpaired,
  apo_zero,
  apo_down,
  discopop,
  sigmoid_norm,
  kto_pair,
  sft
};
constexpr std::array<std::string_view, 18> names_of(DpoLossKind) {
  return {"sigmoid",  "cdpo",     "robust",   "hinge",        "ipo",      "ipo_sum",
          "exo_pair", "nca_pair", "bco_pair", "sppo_hard",    "aot",      "aot_unpaired",
          "apo_zero", "apo_down", "discopop", "sigmoid_norm", "kto_pair", "sft"};
}

/// f-DPO (Wang et al. 2024, arXiv:2309.16240): c and r become f'(pi / pi_ref). Only their
/// difference is meaningful, so losses that read c or r alone reject all but reverse_kl.
enum class DpoDivergence { reverse_kl, forward_kl, js_divergence, alpha_divergence };
constexpr std::array<std::string_view, 4> names_of(DpoDivergence) {
  return {"reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"};
}

/// count: pairs of the global batch; scale: its chosen tokens, if `sft` is among the losses. Needs
/// reference_logp. Metrics, means over pairs: rewards/chosen (beta c), rewards/rejected (beta r),
/// rewards/margins, rewards/accuracies (c > r), logps/chosen, logps/rejected; nll_loss of `sft`;
/// entropy over the answers' tokens.
struct DpoLoss {
  static constexpr std::string_view name = "dpo";
  /// Several losses are summed: MPO (arXiv:2411.10442) is sigmoid, bco_pair and sft; RPO is sigmoid
  /// and sft.
  std::vector<DpoLossKind> kind{DpoLossKind::sigmoid};
  std::vector<double> weights;  ///< one per loss; empty: 1 each
  /// Strength of the KL constraint to the reference; 1 / beta is the target scale of ipo and sppo.
  double beta = 0.1;
  /// Assumed fraction of flipped labels: cdpo, robust (below 0.5), exo_pair (above 0), aot,
  /// aot_unpaired.
  double label_smoothing = 0;
  DpoDivergence divergence = DpoDivergence::reverse_kl;
  double divergence_alpha = 0.5;  ///< alpha_divergence's alpha; 1 is the reverse KL
  /// LD-DPO (arXiv:2409.06411): weight of an answer's tokens beyond the length of the shorter
  /// answer of the pair; 1: equal weights.
  double ld_alpha = 1;
  /// WPO (arXiv:2406.11827): pairs are weighted by the policy's probability of them, relative to
  /// its own confidence at each token.
  bool weighting = false;
  double discopop_tau = 0.05;         ///< temperature of discopop's mixture
  NllMean nll_mean = NllMean::token;  ///< of `sft`

  static void each_field(auto& self, auto&& field) {
    field("beta", self.beta, above_0, "strength of the KL constraint to the reference model");
    field("loss", self.kind,
          "pair loss, or a list of losses that are added: ipo uses log-ratios averaged over tokens "
          "(TRL), ipo_sum summed ones (the paper); cdpo and robust use label_smoothing; kto_pair "
          "is MindSpeed's; sft is the negative log-likelihood of the chosen answers");
    field("loss_weights", self.weights, above_0, "one weight per dpo.loss; empty: 1 each");
    field("label_smoothing", self.label_smoothing, label_noise,
          "cdpo, robust, exo_pair, aot, aot_unpaired: assumed fraction of flipped preference "
          "labels");
    field("divergence", self.divergence,
          "f-divergence from the reference (f-DPO); values other than reverse_kl work with "
          "sigmoid, cdpo, robust, hinge, ipo, ipo_sum, exo_pair, discopop, sigmoid_norm and sft");
    field("divergence_alpha", self.divergence_alpha, "alpha of alpha_divergence; 1 is reverse_kl");
    field("ld_alpha", self.ld_alpha, from_0_to_1,
          "LD-DPO: weight of an answer's tokens beyond the length of the shorter answer; 1: equal "
          "weights");
    field("weighting", self.weighting,
          "WPO: weight pairs by their likelihood under the policy, except in evaluation");
    field("discopop_tau", self.discopop_tau, above_0, "discopop: temperature of its mixture");
    field("nll_mean", self.nll_mean, nll_mean_doc);
  }
  engine::loss::Needs needs() const;
  Result<> validate() const;
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;

  /// Inputs of the losses, [N/2] each: log-probabilities under policy and reference, and the
  /// lengths of the answers in tokens.
  struct Terms {
    Two now, reference, length;
  };
  /// The loss of each pair, except `sft`: [N/2]. aot, aot_unpaired and kto_pair use all pairs of
  /// the batch.
  engine::loss::Expr per_pair(DpoLossKind kind, const Terms& terms) const;
};

}  // namespace troupe::algorithms

// Contrastive preference optimization (Xu et al. 2024, arXiv:2401.08417): DPO with a uniform
// reference and an NLL term on the chosen answer.
//
//   x = log pi(y|x), summed over the answer (ipo: its mean);  z = x_w - x_l
//   sigmoid   L = - log sigmoid(beta z) + nll_weight NLL(y_w)
//
// hinge, ipo, alpha and label_smoothing are those of SimpoLoss.
#pragma once

#include <array>

#include "algorithms/losses/pairs.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

enum class CpoLossKind { sigmoid, hinge, ipo };
constexpr std::array<std::string_view, 3> names_of(CpoLossKind) {
  return {"sigmoid", "hinge", "ipo"};
}

/// count: pairs of the global batch; scale: its chosen tokens (set_nll_tokens). Metrics are those
/// of SimpoLoss; logps are sums, except for ipo.
struct CpoLoss {
  static constexpr std::string_view name = "cpo";
  CpoLossKind kind = CpoLossKind::sigmoid;
  double beta = 0.1;
  double label_smoothing = 0;  ///< sigmoid: assumed fraction of flipped labels
  double alpha = 0;            ///< AlphaPO's reward in place of x
  /// TRL's cpo_alpha; at 0, no term limits the drift of the policy.
  double nll_weight = 1;
  NllMean nll_mean = NllMean::token;

  static void each_field(auto& self, auto&& field) {
    field("loss", self.kind,
          "pair loss: sigmoid and hinge use summed log-probabilities, ipo mean log-probabilities");
    field("beta", self.beta, above_0, "reward scale: beta times the answer's log-probability");
    field("label_smoothing", self.label_smoothing, label_noise,
          "sigmoid: assumed fraction of flipped preference labels");
    field("alpha", self.alpha, "AlphaPO: the reward is (1 - p^-alpha) / alpha; 0: log p");
    field("nll_weight", self.nll_weight, at_least_0,
          "weight of the negative log-likelihood of the chosen answers (TRL's cpo_alpha)");
    field("nll_mean", self.nll_mean, nll_mean_doc);
  }
  engine::loss::Needs needs() const { return {.entropy = true}; }
  Result<> validate() const;
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;

  /// The loss from both answers' x after alpha_reward: [N/2].
  engine::loss::Expr per_pair(const Two& x) const;
};

}  // namespace troupe::algorithms

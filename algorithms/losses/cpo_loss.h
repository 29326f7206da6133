// Contrastive preference optimization (Xu et al. 2024, arXiv:2401.08417): DPO with a uniform
// reference, and the likelihood of what was chosen as its anchor.
//
//   x = log pi(y|x), summed over the answer (ipo: its mean)      z = x_w - x_l
//   sigmoid   L = - log sigmoid(beta z) + nll_weight NLL(y_w)
// hinge, ipo, alpha and label_smoothing as in SimpoLoss.
#pragma once

#include <array>

#include "algorithms/losses/pairs.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// count: the pairs of the global batch; scale: its chosen tokens (set_nll_tokens). Metrics as
/// SimpoLoss; logps are sums, but ipo's.
struct CpoLoss {
  static constexpr std::string_view name = "cpo";
  enum class Kind { sigmoid, hinge, ipo };
  friend constexpr std::array<std::string_view, 3> names_of(Kind) {
    return {"sigmoid", "hinge", "ipo"};
  }

  Kind kind = Kind::sigmoid;
  double beta = 0.1;
  double label_smoothing = 0;  ///< sigmoid: the share of labels thought to be wrong
  double alpha = 0;            ///< AlphaPO's reward in place of x
  double nll_weight = 1;  ///< TRL's cpo_alpha; 0 leaves nothing that holds the policy where it is
  NllMean nll_mean = NllMean::token;

  static void each_field(auto& self, auto&& field) {
    field("kind", self.kind), field("beta", self.beta),
        field("label_smoothing", self.label_smoothing), field("alpha", self.alpha);
    field("nll_weight", self.nll_weight), field("nll_mean", self.nll_mean);
  }
  engine::loss::Needs needs() const { return {.entropy = true}; }
  Result<> validate() const;
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;

  /// From the two answers' x, after alpha_reward: [N/2].
  engine::loss::Expr per_pair(const Two& x) const;
};

}  // namespace troupe::algorithms

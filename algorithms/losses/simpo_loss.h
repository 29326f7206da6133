// SimPO (Meng et al. 2024, arXiv:2405.14734, eq. 6): reference-free preference optimization on the
// mean log-probability per token.
//
//   x_w = log pi(y_w|x) / |y_w|, x_l likewise;  z = x_w - x_l - gamma_beta_ratio
//   sigmoid   L = - log sigmoid(beta z)
//   hinge     L = max(0, 1 - beta z)
//   ipo       L = (z - 1 / (2 beta))^2
//
// AlphaPO (arXiv:2501.03884): x becomes (1 - e^(-alpha x)) / alpha; alpha 0 is SimPO.
#pragma once

#include <array>

#include "algorithms/losses/pairs.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// AlphaPO's reward for a mean log-probability x.
engine::loss::Expr alpha_reward(const engine::loss::Expr& x, double alpha);

enum class SimpoLossKind { sigmoid, hinge, ipo };
constexpr std::array<std::string_view, 3> names_of(SimpoLossKind) {
  return {"sigmoid", "hinge", "ipo"};
}

/// count: pairs of the global batch; scale: its chosen tokens (set_nll_tokens), if nll_weight is
/// not 0. Metrics, means over pairs: rewards/chosen (beta x_w), rewards/rejected, rewards/margins,
/// rewards/accuracies, logps/chosen (x_w), logps/rejected; nll_loss if it is part of the loss;
/// entropy.
struct SimpoLoss {
  static constexpr std::string_view name = "simpo";
  SimpoLossKind kind = SimpoLossKind::sigmoid;
  double beta = 2;
  /// Target margin of the mean log-probabilities, as in SimPO's code and MindSpeed. TRL's
  /// simpo_gamma is the margin of the rewards: beta * gamma_beta_ratio.
  double gamma_beta_ratio = 0.25;
  double gamma = -1;           ///< margin as TRL's simpo_gamma; -1: gamma_beta_ratio is used
  double label_smoothing = 0;  ///< sigmoid: assumed fraction of flipped labels
  double alpha = 0;            ///< alpha of AlphaPO
  /// Weight of the NLL of the chosen answers. 0 is SimPO; TRL's CPOTrainer adds 1 unless cpo_alpha
  /// is set to 0 ("CPO-SimPO").
  double nll_weight = 0;
  NllMean nll_mean = NllMean::token;

  static void each_field(auto& self, auto&& field) {
    field("loss", self.kind, "loss of the margin between the answers' mean log-probabilities");
    field("beta", self.beta, above_0, "reward scale: beta times the mean log-probability");
    field("gamma_beta_ratio", self.gamma_beta_ratio, at_least_0,
          "target margin divided by beta, as in SimPO's own code and MindSpeed");
    field("gamma", self.gamma, Range{-1, unbounded},
          "target reward margin, beta times gamma_beta_ratio (TRL's simpo_gamma); -1: use "
          "gamma_beta_ratio");
    field("label_smoothing", self.label_smoothing, label_noise,
          "sigmoid: assumed fraction of flipped preference labels");
    field("alpha", self.alpha, "AlphaPO: the reward is (1 - p^-alpha) / alpha; 0: log p");
    field("nll_weight", self.nll_weight, at_least_0,
          "weight of the negative log-likelihood of the chosen answers; 0 is SimPO (TRL's "
          "CPOTrainer uses cpo_alpha = 1 by default)");
    field("nll_mean", self.nll_mean, nll_mean_doc);
  }
  /// Target margin of the mean log-probabilities, from the setting that is given.
  double margin() const { return gamma >= 0 ? gamma / beta : gamma_beta_ratio; }
  engine::loss::Needs needs() const { return {.entropy = true}; }
  Result<> validate() const;
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;

  /// The loss from both answers' mean log-probabilities after alpha_reward: [N/2].
  engine::loss::Expr per_pair(const Two& x) const;
  /// The whole loss from the answers' log-probabilities (CPO: sums), and its metrics.
  engine::loss::Expr of(const Two& logp, const engine::loss::TokenStats& now,
                        const engine::data::Experience& b, engine::loss::Report& report) const;
};

}  // namespace troupe::algorithms

// Direct Preference Optimization (Rafailov et al. 2023, arXiv:2305.18290, eq. 7) and the losses that share its inputs.
//
//   c = log pi(y_w|x) / pi_ref(y_w|x),  r = the same of y_l,  delta = c - r           sums over the answer's tokens
//   sigmoid   L = - log sigmoid(beta delta)
// The others stand in dpo_loss.cpp, one line each, with their sources. Sequence 2k is y_w (chosen), 2k+1 is y_l (rejected).
#pragma once

#include <array>

#include "engine/loss/loss.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// count: the pairs of the global batch. Needs reference_logp.
/// Metrics, means over pairs: rewards/chosen (beta c), rewards/rejected (beta r), rewards/margins, rewards/accuracies (c > r),
/// logps/chosen, logps/rejected.
struct DpoLoss {
  static constexpr std::string_view name = "dpo";
  /// Where tools differ under one name: `ipo` divides log-ratios by the answers' lengths (TRL from 0.24), `ipo_sum` does not (the paper,
  /// OpenRLHF, older TRL). Label smoothing: `cdpo` (Mitchell 2023, OpenRLHF) and `robust` (Chowdhury et al. 2024); TRL's `sigmoid`
  /// ignores it, so a smoothing that nothing would use is refused here.
  enum class Kind {
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
    apo_zero,
    apo_down,
    discopop,
    sigmoid_norm
  };
  friend constexpr std::array<std::string_view, 14> names_of(Kind) {
    return {"sigmoid",  "cdpo",     "robust",    "hinge",    "ipo",      "ipo_sum",  "exo_pair",
            "nca_pair", "bco_pair", "sppo_hard", "apo_zero", "apo_down", "discopop", "sigmoid_norm"};
  }

  Kind kind = Kind::sigmoid;
  double beta = 0.1;           ///< strength of the pull to the reference; 1 / beta is ipo's and sppo's target scale
  double label_smoothing = 0;  ///< the share of labels thought to be wrong: cdpo, robust (below 0.5), exo_pair (above 0)
  double discopop_tau = 0.05;  ///< temperature of discopop's mixture

  static void each_field(auto& self, auto&& field) {
    field("kind", self.kind), field("beta", self.beta), field("label_smoothing", self.label_smoothing),
        field("discopop_tau", self.discopop_tau);
  }
  engine::loss::Needs needs() const { return {.reference = true}; }
  Result<> validate() const;
  engine::loss::Expr operator()(const engine::loss::TokenStats& now, const engine::data::Experience& b, engine::loss::Report& report) const;

  /// The loss of each pair, from the log-ratios c and r and the answers' lengths in tokens: all [N/2].
  engine::loss::Expr per_pair(const engine::loss::Expr& c, const engine::loss::Expr& r, const engine::loss::Expr& chosen_length,
                              const engine::loss::Expr& rejected_length) const;
};

}  // namespace troupe::algorithms

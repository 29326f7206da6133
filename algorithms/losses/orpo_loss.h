// Odds ratio preference optimization (Hong et al. 2024, arXiv:2403.07691, eq. 6 and 7): supervised
// fine-tuning plus an odds-ratio term.
//
//   x = mean over the answer's tokens of log pi
//   log odds = (x_w - log(1 - e^x_w)) - (x_l - log(1 - e^x_l))
//   L = NLL(chosen) - beta log sigmoid(log odds)
#pragma once

#include "algorithms/losses/pairs.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// count: pairs of the global batch; scale: the masked tokens of its chosen sequences
/// (set_nll_tokens), over which the likelihood is averaged. If the mask covers prompts (TRL: NLL of
/// prompt and answer), Experience::answer marks the answers. Metrics, means over pairs: those of
/// SimpoLoss, nll_loss, log_odds_ratio (log sigmoid of the log odds), log_odds_chosen (the log
/// odds).
struct OrpoLoss {
  static constexpr std::string_view name = "orpo";
  double beta = 0.1;  ///< the paper's lambda

  static void each_field(auto& self, auto&& field) {
    field("beta", self.beta, above_0, "weight of the odds-ratio loss (the paper's lambda)");
  }
  engine::loss::Needs needs() const { return {.entropy = true}; }
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;
};

/// The log odds of the chosen over the rejected answer from mean log-probabilities: [N/2]. x is
/// clamped to at most -1e-7, because an answer of probability 1 has infinite odds.
engine::loss::Expr log_odds(const Two& x);

}  // namespace troupe::algorithms

// DPO's kinds: one line each.
#include <cmath>
#include <limits>

#include "algorithms/losses/dpo_loss.h"
#include "engine/base/check.h"

namespace troupe::algorithms {

using namespace engine::loss;

namespace {

using Kind = DpoLoss::Kind;

// f'(e^x) - f'(1). alpha's exponent is held where float32 still has a number for its power, as in
// TRL.
Expr score(const Expr& x, DpoLoss::Divergence divergence, double alpha) {
  switch (divergence) {
    case DpoLoss::Divergence::reverse_kl:
      return x;
    case DpoLoss::Divergence::forward_kl:
      return 1.0 - exp(-x);
    case DpoLoss::Divergence::js_divergence:
      return std::log(2.0) + log_sigmoid(x);
    case DpoLoss::Divergence::alpha_divergence:
      if (std::abs(alpha - 1) < 1e-6) return x;
      return (exp(clip((alpha - 1) * x, -std::numeric_limits<double>::infinity(), 80)) - 1.0) /
             (alpha - 1);
  }
  check(false, "DpoLoss: a divergence without a formula");
  return {};
}

// Of the pairs at hand, no less than 0.
Expr mean_kl(const Expr& log_ratio) {
  return max(mean(log_ratio), 0.0);
}

}  // namespace

Expr DpoLoss::per_pair(Kind which, const Terms& t) const {
  const double eps = label_smoothing;
  const Expr c = t.now.chosen - t.reference.chosen, r = t.now.rejected - t.reference.rejected;
  const Expr sc = score(c, divergence, divergence_alpha),
             sr = score(r, divergence, divergence_alpha);
  const Expr margin = beta * (sc - sr), by_length = sc / t.length.chosen - sr / t.length.rejected;
  const Expr won = -log_sigmoid(margin), lost = -log_sigmoid(-margin);
  const Expr mixing = sigmoid(margin / discopop_tau);
  switch (which) {
    case Kind::sigmoid:
      return won;  // arXiv:2305.18290
    case Kind::cdpo:
      return smoothed(margin, eps);  // ericmitchell.ai/cdpo.pdf
    case Kind::robust:
      return ((1 - eps) * won - eps * lost) / (1 - 2 * eps);  // arXiv:2403.00409
    case Kind::hinge:
      return relu(1.0 - margin);  // SLiC-HF, arXiv:2305.10425
    case Kind::ipo:
      return square(by_length - 1 / (2 * beta));  // arXiv:2310.12036, by length
    case Kind::ipo_sum:
      return square(sc - sr - 1 / (2 * beta));  // arXiv:2310.12036, eq. 17
    case Kind::exo_pair:                        // arXiv:2402.00856, eq. 16
      return sigmoid(margin) * (-won - std::log(1 - eps)) +
             sigmoid(-margin) * (-lost - std::log(eps));
    case Kind::nca_pair:  // arXiv:2402.05369
      return -log_sigmoid(beta * c) - 0.5 * log_sigmoid(-beta * c) - 0.5 * log_sigmoid(-beta * r);
    case Kind::bco_pair:
      return -log_sigmoid(beta * c) - log_sigmoid(-beta * r);  // arXiv:2404.04656, no running shift
    case Kind::sppo_hard:
      return square(c - 0.5 / beta) + square(r + 0.5 / beta);  // arXiv:2405.00675
    case Kind::aot:                                            // arXiv:2406.05882, paired
      return smoothed(beta * (sorted(t.now.chosen - t.now.rejected) -
                              sorted(t.reference.chosen - t.reference.rejected)),
                      eps);
    case Kind::aot_unpaired:
      return smoothed(beta * (sorted(c) - sorted(r)), eps);  // arXiv:2406.05882, unpaired
    case Kind::apo_zero:
      return 1.0 - sigmoid(beta * c) + sigmoid(beta * r);  // arXiv:2408.06266, eq. 7
    case Kind::apo_down:
      return sigmoid(beta * c) + 1.0 - sigmoid(margin);  // arXiv:2408.06266, eq. 8
    case Kind::discopop:
      return (1.0 - mixing) * won + mixing * exp(-margin);  // arXiv:2406.08414
    case Kind::sigmoid_norm:
      return -log_sigmoid(beta * by_length);  // Tülu 3, arXiv:2411.15124
    case Kind::kto_pair:  // arXiv:2402.01306, of pairs; half: a mean over both answers
      return 0.5 * (1.0 - sigmoid(beta * (c - mean_kl(r)))) +
             0.5 * (1.0 - sigmoid(beta * (mean_kl(c) - r)));
    case Kind::sft:
      break;  // no loss of a pair: nll_of_chosen
  }
  check(false, "DpoLoss: a kind without a formula for pairs");
  return {};
}

}  // namespace troupe::algorithms

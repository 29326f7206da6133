#include "algorithms/losses/dpo_loss.h"

#include <cmath>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<DpoLoss>);

Result<> DpoLoss::validate() const {
  const bool smooths = kind == Kind::cdpo || kind == Kind::robust || kind == Kind::exo_pair;
  if (!(beta > 0) || !std::isfinite(beta)) return fail(Errc::usage, cat("dpo.beta: expected a number above 0, found ", beta));
  if (!smooths && label_smoothing != 0)
    return fail(Errc::usage, cat("dpo.label_smoothing: ", names_of(kind)[static_cast<std::size_t>(kind)], " does not use it (found ",
                                 label_smoothing, "); choose the kind cdpo or robust, or 0"));
  if (!(label_smoothing >= 0 && label_smoothing < 0.5))
    return fail(Errc::usage, cat("dpo.label_smoothing: expected at least 0 and below 0.5, found ", label_smoothing));
  if (kind == Kind::exo_pair && label_smoothing == 0)
    return fail(Errc::usage, "dpo.label_smoothing: exo_pair needs a number above 0 (1e-3 is usual), found 0");
  if (!(discopop_tau > 0)) return fail(Errc::usage, cat("dpo.discopop_tau: expected a number above 0, found ", discopop_tau));
  return {};
}

Expr DpoLoss::per_pair(const Expr& c, const Expr& r, const Expr& chosen_length, const Expr& rejected_length) const {
  const double eps = label_smoothing;
  const Expr delta = c - r, margin = beta * delta;
  const Expr by_length = c / chosen_length - r / rejected_length;
  const Expr won = -log_sigmoid(margin), lost = -log_sigmoid(-margin);
  const Expr mixing = sigmoid(margin / discopop_tau);
  switch (kind) {
    case Kind::sigmoid:
      return won;  // arXiv:2305.18290
    case Kind::cdpo:
      return (1 - eps) * won + eps * lost;  // ericmitchell.ai/cdpo.pdf
    case Kind::robust:
      return ((1 - eps) * won - eps * lost) / (1 - 2 * eps);  // arXiv:2403.00409
    case Kind::hinge:
      return relu(1.0 - margin);  // SLiC-HF, arXiv:2305.10425
    case Kind::ipo:
      return square(by_length - 1 / (2 * beta));  // arXiv:2310.12036, by length
    case Kind::ipo_sum:
      return square(delta - 1 / (2 * beta));  // arXiv:2310.12036, eq. 17
    case Kind::exo_pair:                      // arXiv:2402.00856, eq. 16
      return sigmoid(margin) * (-won - std::log(1 - eps)) + sigmoid(-margin) * (-lost - std::log(eps));
    case Kind::nca_pair:  // arXiv:2402.05369
      return -log_sigmoid(beta * c) - 0.5 * log_sigmoid(-beta * c) - 0.5 * log_sigmoid(-beta * r);
    case Kind::bco_pair:
      return -log_sigmoid(beta * c) - log_sigmoid(-beta * r);  // arXiv:2404.04656, no running shift
    case Kind::sppo_hard:
      return square(c - 0.5 / beta) + square(r + 0.5 / beta);  // arXiv:2405.00675
    case Kind::apo_zero:
      return 1.0 - sigmoid(beta * c) + sigmoid(beta * r);  // arXiv:2408.06266, eq. 7
    case Kind::apo_down:
      return sigmoid(beta * c) + 1.0 - sigmoid(margin);  // arXiv:2408.06266, eq. 8
    case Kind::discopop:
      return (1.0 - mixing) * won + mixing * exp(-margin);  // arXiv:2406.08414
    case Kind::sigmoid_norm:
      return -log_sigmoid(beta * by_length);  // Tülu 3, arXiv:2411.15124
  }
  check(false, "DpoLoss: a kind without a formula");
  return {};
}

Expr DpoLoss::operator()(const TokenStats& now, const engine::data::Experience& b, Report& report) const {
  check(b.reference_logp.size() == b.tokens.size(), "DpoLoss: reference_logp is missing");
  const Expr logp = sum_by_sequence(where(b.mask, now.logp, 0.0) * b.mask, b.offsets);                          // [N]
  const Expr log_ratio = sum_by_sequence(where(b.mask, now.logp - b.reference_logp, 0.0) * b.mask, b.offsets);  // [N]
  const Expr length = max(sum_by_sequence(b.mask, b.offsets), 1.0);                                             // [N]
  const Expr c = chosen(log_ratio), r = rejected(log_ratio);                                                    // [N/2]
  report.mean("rewards/chosen", beta * c);
  report.mean("rewards/rejected", beta * r);
  report.mean("rewards/margins", beta * (c - r));
  report.mean("rewards/accuracies", c > r);
  report.mean("logps/chosen", chosen(logp));
  report.mean("logps/rejected", rejected(logp));
  return sum(per_pair(c, r, chosen(length), rejected(length))) / b.count;
}

}  // namespace troupe::algorithms

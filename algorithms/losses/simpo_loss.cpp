#include "algorithms/losses/simpo_loss.h"

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<SimpoLoss>);

Expr alpha_reward(const Expr& x, double alpha) {
  return alpha == 0 ? x : (1.0 - exp(-alpha * x)) / alpha;
}

Result<> SimpoLoss::validate() const {
  const auto wrong = [](auto... words) { return fail(Errc::usage, cat("simpo.", words...)); };
  if (gamma < 0 && gamma != -1)
    return wrong("gamma: expected a number of at least 0, or -1 (gamma_beta_ratio is used), found ",
                 gamma);
  if (label_smoothing != 0 && kind != SimpoLossKind::sigmoid)
    return wrong("label_smoothing: only the kind sigmoid uses it (found ", label_smoothing, ")");
  return {};
}

Expr SimpoLoss::per_pair(const Two& x) const {
  const Expr z = x.chosen - x.rejected - margin();
  switch (kind) {
    case SimpoLossKind::sigmoid:
      return smoothed(beta * z, label_smoothing);
    case SimpoLossKind::hinge:
      return relu(1.0 - beta * z);
    case SimpoLossKind::ipo:
      return square(z - 1 / (2 * beta));
  }
  check(false, "SimpoLoss: a kind without a formula");
  return {};
}

Expr SimpoLoss::of(const Two& logp, const TokenStats& now, const engine::data::Experience& b,
                   Report& report) const {
  const Two x{alpha_reward(logp.chosen, alpha), alpha_reward(logp.rejected, alpha)};
  report_pairs(report, {beta * x.chosen, beta * x.rejected}, logp);
  if (!now.entropy.empty()) report.mean("entropy", now.entropy, b.mask);
  const Expr loss = sum(per_pair(x)) / b.count;
  return nll_weight == 0 ? loss : loss + nll_weight * nll_of_chosen(now.logp, b, nll_mean, report);
}

Expr SimpoLoss::operator()(const TokenStats& now, const engine::data::Experience& b,
                           Report& report) const {
  return of(split(weighted_sum(now.logp, b.mask, b.offsets) / weight_of(b.mask, b.offsets)), now, b,
            report);
}

}  // namespace troupe::algorithms

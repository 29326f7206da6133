#include "algorithms/losses/orpo_loss.h"

#include <limits>

#include "engine/base/errors/check.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<OrpoLoss>);

Expr log_odds(const Two& x) {
  const auto odds = [](const Expr& mean) {
    const Expr held = clip(mean, -std::numeric_limits<double>::infinity(), -1e-7);
    return held - log1mexp(held);
  };
  return odds(x.chosen) - odds(x.rejected);
}

Expr OrpoLoss::operator()(const TokenStats& now, const engine::data::Experience& b,
                          Report& report) const {
  check(b.answer.empty() || b.answer.size() == b.tokens.size(),
        "OrpoLoss: one answer weight per token is needed");
  const auto& answer = b.answer.empty() ? b.mask : b.answer;
  const Two x = split(weighted_sum(now.logp, answer, b.offsets) / weight_of(answer, b.offsets));
  const Expr odds = log_odds(x), ratio = log_sigmoid(odds);
  report_pairs(report, {beta * x.chosen, beta * x.rejected}, x);
  report.mean("log_odds_chosen", odds);
  report.mean("log_odds_ratio", ratio);
  if (!now.entropy.empty()) report.mean("entropy", now.entropy, b.mask);
  return nll_of_chosen(now.logp, b, NllMean::token, report) - beta * sum(ratio) / b.count;
}

}  // namespace troupe::algorithms

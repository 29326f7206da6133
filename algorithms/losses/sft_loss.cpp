#include "algorithms/losses/sft_loss.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<SftLoss>);

Expr SftLoss::operator()(const TokenStats& now, const engine::data::Experience& b,
                         Report& report) const {
  const Expr logp = where(b.mask, now.logp, 0.0);
  const Expr weight = kind == SftLossKind::dft ? detach(exp(logp)) : Expr(1.0);
  report.mean("nll", -logp, b.mask);
  if (!now.entropy.empty()) report.mean("entropy", now.entropy, b.mask);
  return -sum(weight * logp * b.mask) / b.count;
}

}  // namespace troupe::algorithms

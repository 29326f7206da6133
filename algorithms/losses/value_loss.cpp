#include "algorithms/losses/value_loss.h"

#include "engine/base/errors/check.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<ValueLoss>);

namespace {

// Huber loss: 1/2 x^2, linear beyond |x| = huber.
Expr distance(const Expr& x, double huber) {
  const Expr squared = square(x) / 2.0;
  if (huber == 0) return squared;
  return where(abs(x) > huber, huber * abs(x) - huber * huber / 2, squared);
}

}  // namespace

Expr ValueLoss::operator()(const TokenStats& now, const engine::data::Experience& b,
                           Report& report) const {
  check(now.scores.size() == 1, "ValueLoss: a score head with one label is needed");
  check(b.returns.size() == b.tokens.size(), "ValueLoss: returns are missing");
  check(clip == 0 || b.value.size() == b.tokens.size(), "ValueLoss: value is missing");
  const Expr value = where(b.mask, now.scores.front(), 0.0),
             returns = where(b.mask, b.returns, 0.0);  // [T]
  report.mean("critic/vpred_mean", value, b.mask);
  Expr loss = distance(value - returns, huber);
  if (clip != 0) {
    const Expr old = where(b.mask, b.value, 0.0);
    const Expr held = old + engine::loss::clip(value - old, -clip, clip);
    const Expr clipped = distance(held - returns, huber);
    report.mean("val/clipfrac_avg", clipped > loss, b.mask);
    loss = max(loss, clipped);
  }
  report.mean("loss/value_avg", loss, b.mask);
  return coef * sum(loss * b.mask) / (b.count * b.scale);
}

}  // namespace troupe::algorithms

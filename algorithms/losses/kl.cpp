#include "algorithms/losses/kl.h"

#include "engine/base/errors/check.h"

namespace troupe::algorithms {

using namespace engine::loss;

namespace {

Expr clamped(const Expr& x, double maximum) {
  return clip(x, -maximum, maximum);
}

Expr k3(const Expr& x, KlClamp clamp) {
  const Expr within = clamp == KlClamp::verl ? clamped(x, 20) : x;
  const Expr value = exp(-within) - 1.0 + within;
  return clamp == KlClamp::verl ? clamped(value, 10) : value;
}

Expr plain(KlEstimator estimator, const Expr& x, KlClamp clamp) {
  const Expr k2 = square(x) / 2.0;
  switch (estimator) {
    case KlEstimator::k1:
      return x;
    case KlEstimator::k2:
      return k2;
    case KlEstimator::k3:
      return k3(x, clamp);
    case KlEstimator::abs:
      return abs(x);
    case KlEstimator::k1_plus:
      return detach(x - k2) + k2;
    case KlEstimator::k3_plus:
      return detach(k3(x, clamp) - k2) + k2;
  }
  check(false, "kl: an estimator without a formula");
  return {};
}

}  // namespace

Expr kl(KlEstimator estimator, const Expr& x, KlClamp clamp) {
  const Expr value = plain(estimator, x, clamp);
  return clamp == KlClamp::openrlhf ? clamped(value, 10) : value;
}

}  // namespace troupe::algorithms

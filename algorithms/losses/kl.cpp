#include "algorithms/losses/kl.h"

#include "engine/base/check.h"

namespace troupe::algorithms {

using namespace engine::loss;

Expr kl(KlEstimator estimator, const Expr& x) {
  switch (estimator) {
    case KlEstimator::k1:
      return x;
    case KlEstimator::k2:
      return square(x) / 2.0;
    case KlEstimator::k3:
      return exp(-x) - 1.0 + x;
    case KlEstimator::abs:
      return abs(x);
  }
  check(false, "kl: an estimator without a formula");
  return {};
}

}  // namespace troupe::algorithms

#include "algorithms/advantages/controllers.h"

#include <algorithm>

namespace troupe::algorithms {

double KlControl::next(double coef, double kl, double samples) const {
  if (schedule == KlSchedule::fixed) return coef;
  return coef * (1 + std::clamp(kl / target - 1, -0.2, 0.2) * samples / horizon);
}

double EntropyControl::next(double coef, double entropy) const {
  if (!adaptive() || entropy == target) return coef;
  return std::clamp(coef + (entropy < target ? delta : -delta), min, max);
}

}  // namespace troupe::algorithms

#include "algorithms/kl_control.h"

#include <algorithm>

namespace troupe::algorithms {

double KlControl::next(double coef, double kl, double samples) const {
  if (schedule == KlSchedule::fixed) return coef;
  return coef * (1 + std::clamp(kl / target - 1, -0.2, 0.2) * samples / horizon);
}

}  // namespace troupe::algorithms

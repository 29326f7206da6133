#include "algorithms/advantages/whiten.h"

#include <cmath>

#include "engine/base/errors/check.h"

namespace troupe::algorithms {

std::vector<double> whitened(std::span<const double> x, std::span<const float> mask,
                             const Whitening& how) {
  check(x.size() == mask.size(), "whitened: one weight per number is needed");
  std::vector<double> out(x.size(), 0);
  double count = 0, sum = 0, squares = 0, first = 0;
  bool flat = true;
  for (std::size_t t = 0; t < x.size(); ++t) {
    if (mask[t] == 0) continue;
    if (count == 0) first = x[t];
    flat = flat && x[t] == first;
    count += 1;
    sum += x[t];
  }
  if (count == 0) return out;
  const double mean = flat ? first : sum / count;
  for (std::size_t t = 0; t < x.size(); ++t)
    squares += mask[t] != 0 ? (x[t] - mean) * (x[t] - mean) : 0;
  const double divisor = how.variance == Variance::bessel ? count - 1 : count;
  const double scale = 1 / std::sqrt((divisor > 0 ? squares / divisor : 0) + 1e-8);
  for (std::size_t t = 0; t < x.size(); ++t)
    if (mask[t] != 0) out[t] = (x[t] - mean) * scale + (how.shift_mean ? 0 : mean);
  return out;
}

}  // namespace troupe::algorithms

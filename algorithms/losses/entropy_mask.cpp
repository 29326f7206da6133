#include "algorithms/losses/entropy_mask.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace troupe::algorithms {

double quantile(std::vector<double> x, double q) {
  if (x.empty()) return 0;
  std::sort(x.begin(), x.end());
  const double at = q * static_cast<double>(x.size() - 1), below = std::floor(at);
  const auto i = static_cast<std::size_t>(below);
  return i + 1 < x.size() ? x[i] + (at - below) * (x[i + 1] - x[i]) : x.back();
}

std::vector<double> top_entropy_mask(std::span<const double> entropy, std::span<const float> mask,
                                     double share) {
  check(entropy.size() == mask.size(), "top_entropy_mask: entropies are missing");
  std::vector<double> trained;
  for (std::size_t t = 0; t < mask.size(); ++t)
    if (mask[t] != 0) trained.push_back(entropy[t]);
  const double threshold = quantile(std::move(trained), 1 - share);
  std::vector<double> out(mask.size(), 0);
  for (std::size_t t = 0; t < mask.size(); ++t)
    out[t] = mask[t] != 0 && entropy[t] >= threshold ? 1 : 0;
  return out;
}

}  // namespace troupe::algorithms

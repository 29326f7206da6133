#include "algorithms/estimators.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace troupe::algorithms {
namespace {

// The 97.5 % quantile of the normal distribution.
constexpr double z = 1.959963984540054;

}  // namespace

double pass_at_k(std::int64_t n, std::int64_t c, std::int64_t k) {
  check(k >= 1 && k <= n && c >= 0 && c <= n, "pass_at_k: 1 <= k <= n and 0 <= c <= n");
  if (n - c < k) return 1;
  // C(n - c, k) / C(n, k) as a product, in which nothing overflows.
  double none = 1;
  for (std::int64_t i = n - c + 1; i <= n; ++i)
    none *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - none;
}

std::vector<std::int64_t> pass_ks(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t k = 1; k <= n; k *= 2) out.push_back(k);
  return out;
}

Interval wilson_interval(std::int64_t successes, std::int64_t count) {
  check(count >= 1 && successes >= 0 && successes <= count,
        "wilson_interval: 0 <= successes <= count and 1 <= count");
  const double n = static_cast<double>(count), p = static_cast<double>(successes) / n;
  const double center = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  // Rounding must not exclude the proportion itself, at 0 and 1.
  return {std::min(p, std::max(0.0, center - half)), std::max(p, std::min(1.0, center + half))};
}

Interval normal_interval(std::span<const double> values) {
  check(!values.empty(), "normal_interval: at least one value");
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half = n > 1 ? z * std::sqrt(squares / (n - 1) / n) : 0;
  return {mean - half, mean + half};
}

}  // namespace troupe::algorithms

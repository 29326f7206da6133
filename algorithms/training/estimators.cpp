#include "algorithms/training/estimators.h"

#include <algorithm>
#include <cmath>

#include "engine/base/errors/check.h"

namespace troupe::algorithms {
namespace {

// The 97.5 % quantile of the normal distribution.
constexpr double z = 1.959963984540054;

/// `p` of `n` trials.
Interval wilson(double p, double n) {
  const double center = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  // Rounding must not exclude the proportion itself, at 0 and 1.
  return {std::min(p, std::max(0.0, center - half)), std::max(p, std::min(1.0, center + half))};
}

/// Mean, and the sum of the squared differences from it.
struct Moments {
  double mean = 0, squares = 0;
  explicit Moments(std::span<const double> values) {
    for (const double value : values) mean += value;
    mean /= static_cast<double>(values.size());
    for (const double value : values) squares += (value - mean) * (value - mean);
  }
};

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
  const auto n = static_cast<double>(count);
  return wilson(static_cast<double>(successes) / n, n);
}

double t_quantile(std::int64_t degrees_of_freedom) {
  check(degrees_of_freedom >= 1, "t_quantile: at least one degree of freedom");
  constexpr double pi = 3.14159265358979323846, tails = 0.05;
  const auto n = static_cast<double>(degrees_of_freedom);
  if (degrees_of_freedom == 1) return 1 / std::tan(tails * pi / 2);
  if (degrees_of_freedom == 2) return std::sqrt(2 / (tails * (2 - tails)) - 2);
  const double a = 1 / (n - 0.5), b = 48 / (a * a);
  double c = ((20700 * a / b - 98) * a - 16) * a + 96.36;
  const double d = ((94.5 / (b + c) - 3) / b + 1) * std::sqrt(a * pi / 2) * n;
  double y = std::pow(d * tails, 2 / n);
  if (y > 0.05 + a) {  // an expansion about the normal distribution
    const double x = -z;
    y = x * x;
    if (n < 5) c += 0.3 * (n - 4.5) * (x + 0.6);
    c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c;
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x;
    return std::sqrt(n * std::expm1(a * y * y));
  }
  y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) *
          (n + 1) / (n + 2) +
      1 / y;
  return std::sqrt(n * y);
}

Interval clustered_interval(std::span<const double> values, double draws) {
  check(!values.empty() && draws >= 1, "clustered_interval: at least one value and one draw");
  const auto items = static_cast<double>(values.size());
  const Moments found(values);
  const double p = std::clamp(found.mean, 0.0, 1.0);
  if (draws == 1 || items == 1 || p == 0 || p == 1) return wilson(p, items);
  const double variance = found.squares / (items - 1) / items,
               correction = z / t_quantile(std::ssize(values) - 1), all = items * draws;
  // No variance between items that are neither all 0 nor all 1: as many trials as draws.
  const double trials = variance > 0 ? std::min(p * (1 - p) / variance, all) : all;
  return wilson(p, std::max(1.0, trials * correction * correction));
}

Interval normal_interval(std::span<const double> values) {
  check(!values.empty(), "normal_interval: at least one value");
  const auto n = static_cast<double>(values.size());
  const Moments found(values);
  const double half = n > 1 ? z * std::sqrt(found.squares / (n - 1) / n) : 0;
  return {found.mean - half, found.mean + half};
}

}  // namespace troupe::algorithms

// Estimators of an evaluation: pass@k and confidence intervals.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::algorithms {

/// The probability that at least one of k samples passes, estimated without bias from n samples of
/// which c pass: 1 - C(n - c, k) / C(n, k) (Chen et al. 2021, arXiv:2107.03374, eq. 1).
/// 1 <= k <= n, 0 <= c <= n.
double pass_at_k(std::int64_t n, std::int64_t c, std::int64_t k);

/// 1, 2, 4, ... up to n: the values of k for which pass@k is reported.
std::vector<std::int64_t> pass_ks(std::int64_t n);

/// A confidence interval of 95 %.
struct Interval {
  double low = 0, high = 0;
};

/// Wilson's score interval of a proportion (Wilson 1927): it stays within [0, 1] and is valid near
/// both ends. `count` is at least 1.
Interval wilson_interval(std::int64_t successes, std::int64_t count);

/// Interval of a mean of independent values by the normal approximation: mean +- 1.96 s / sqrt(N),
/// s with N - 1. A single value has an interval of length 0. At least one value.
Interval normal_interval(std::span<const double> values);

}  // namespace troupe::algorithms

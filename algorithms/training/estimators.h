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

/// Wilson's score interval of a mean over items whose completions are not independent of each
/// other: that of `values.size()` proportions, each an unbiased estimate from `draws` independent
/// draws of one item (pass@k of n completions: n / k). The number of trials is the effective one,
/// p (1 - p) / v with v the variance of the mean over the items (Kish 1965, design effect), times
/// (z / t)^2 with t of one degree of freedom less than items (Korn and Graubard 1998, Survey
/// Methodology 24); at least 1, at most the number of draws. Franco, Little, Louis and Slud 2019
/// (J. Survey Stat. Methodol. 7) compare it with others. Where all values are 0, or all 1, they
/// contain no variance, and each item counts as one trial. With one draw of each item it is
/// wilson_interval(). Values from 0 to 1, at least one; draws at least 1.
Interval clustered_interval(std::span<const double> values, double draws);

/// The 97.5 % quantile of Student's t distribution (Hill 1970, algorithm 396; four digits from two
/// degrees of freedom on, exact for one and two). At least 1.
double t_quantile(std::int64_t degrees_of_freedom);

/// Interval of a mean of independent values by the normal approximation: mean +- 1.96 s / sqrt(N),
/// s with N - 1. A single value has an interval of length 0. At least one value.
Interval normal_interval(std::span<const double> values);

}  // namespace troupe::algorithms

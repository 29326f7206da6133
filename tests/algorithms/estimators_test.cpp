// pass@k and confidence intervals against plain loops and published values.
#include "algorithms/estimators.h"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::algorithms {
namespace {

// The share of the subsets of k of n samples, of which the first c pass, that contain one that
// passes.
double share_of_subsets(int n, int c, int k) {
  int all = 0, with_pass = 0;
  for (unsigned subset = 0; subset < (1u << n); ++subset) {
    if (__builtin_popcount(subset) != k) continue;
    ++all;
    with_pass += (subset & ((1u << c) - 1)) != 0;
  }
  return static_cast<double>(with_pass) / all;
}

TEST(PassAtK, IsTheShareOfSubsetsThatContainAPass) {
  for (int n = 1; n <= 10; ++n)
    for (int c = 0; c <= n; ++c)
      for (int k = 1; k <= n; ++k)
        EXPECT_NEAR(pass_at_k(n, c, k), share_of_subsets(n, c, k), 1e-12)
            << n << ' ' << c << ' ' << k;
}

TEST(PassAtK, IsFiniteForManySamples) {
  EXPECT_NEAR(pass_at_k(65536, 1, 32768), 0.5, 1e-9);
  EXPECT_EQ(pass_at_k(65536, 0, 65536), 0);
  EXPECT_EQ(pass_at_k(65536, 65536, 1), 1);
}

TEST(PassAtK, IsReportedForThePowersOfTwo) {
  EXPECT_EQ(pass_ks(1), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(pass_ks(7), (std::vector<std::int64_t>{1, 2, 4}));
  EXPECT_EQ(pass_ks(8), (std::vector<std::int64_t>{1, 2, 4, 8}));
}

// Brown, Cai and DasGupta 2001, table 5 lists Wilson's intervals for n = 10; the ends solve
// (p - x/n)^2 = z^2 p (1 - p) / n.
TEST(WilsonInterval, EndsWhereTheScoreTestRejects) {
  for (const auto& [x, n] : {std::pair{0, 10}, {3, 10}, {10, 10}, {188, 200}}) {
    const auto interval = wilson_interval(x, n);
    const double found = static_cast<double>(x) / n;
    for (const double p : {interval.low, interval.high}) {
      if (p == 0 || p == 1) continue;
      EXPECT_NEAR((p - found) * (p - found),
                  1.959963984540054 * 1.959963984540054 * p * (1 - p) / n, 1e-12)
          << x << " of " << n;
    }
    EXPECT_LE(interval.low, found);
    EXPECT_GE(interval.high, found);
  }
  EXPECT_NEAR(wilson_interval(0, 10).high, 0.2775, 5e-5);
  EXPECT_NEAR(wilson_interval(10, 10).low, 0.7225, 5e-5);
}

TEST(NormalInterval, IsTheMeanAndItsStandardErrors) {
  const auto interval = normal_interval(std::vector<double>{0, 1, 0, 1, 1});
  const double error = std::sqrt(0.3 / 5);  // variance with N - 1: 0.3
  EXPECT_NEAR(interval.low, 0.6 - 1.959963984540054 * error, 1e-12);
  EXPECT_NEAR(interval.high, 0.6 + 1.959963984540054 * error, 1e-12);
  const auto one = normal_interval(std::vector<double>{0.5});
  EXPECT_EQ(one.low, 0.5);
  EXPECT_EQ(one.high, 0.5);
}

}  // namespace
}  // namespace troupe::algorithms

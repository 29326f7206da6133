// pass@k and confidence intervals against plain loops and published values.
#include "algorithms/training/estimators.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

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

// The integral of the density, solved by bisection.
TEST(TQuantile, IsThatOfTheDistribution) {
  const std::pair<int, double> found[] = {{1, 12.7062},  {2, 4.30265},  {3, 3.18245},
                                          {4, 2.77645},  {5, 2.57058},  {10, 2.22814},
                                          {30, 2.04227}, {100, 1.98397}};
  for (const auto& [n, t] : found) EXPECT_NEAR(t_quantile(n), t, 2e-4 * t) << n;
}

// Computed by another program, which solves the quadratic equation of the score test with the
// effective number of trials.
TEST(ClusteredInterval, IsWilsonsWithTheEffectiveNumberOfTrials) {
  struct Case {
    std::vector<double> values;
    double draws, low, high;
  };
  for (const Case& each :
       {Case{{0.25, 0.75, 0.5, 1, 0, 0.25}, 4, 0.168335, 0.779605},
        Case{{0.5, 0.5, 0.5, 0.5, 0.5}, 4, 0.236275, 0.763725},
        Case{{1, 1, 0, 0.5}, 2, 0.117789, 0.954139}, Case{{0.25, 0.75}, 4, 0.0546208, 0.945379}}) {
    const auto interval = clustered_interval(each.values, each.draws);
    EXPECT_NEAR(interval.low, each.low, 1e-4);
    EXPECT_NEAR(interval.high, each.high, 1e-4);
  }
}

TEST(ClusteredInterval, OfOneDrawOrOfEqualItemsIsWilsons) {
  const auto same = [](const Interval& a, const Interval& b) {
    EXPECT_DOUBLE_EQ(a.low, b.low);
    EXPECT_DOUBLE_EQ(a.high, b.high);
  };
  same(clustered_interval(std::vector<double>{0, 1, 0, 1, 1}, 1), wilson_interval(3, 5));
  same(clustered_interval(std::vector<double>(20, 0.0), 8), wilson_interval(0, 20));
  same(clustered_interval(std::vector<double>(20, 1.0), 8), wilson_interval(20, 20));
  EXPECT_GT(clustered_interval(std::vector<double>{0.5}, 8).high, 0.9) << "one item shows little";
}

// Items of which some are hard and some are easy, each with eight completions.
TEST(ClusteredInterval, ContainsTheTrueRateInNineteenOfTwentyEvaluations) {
  std::mt19937_64 random(1);
  const auto draw = [&](double p) { return static_cast<double>(random() >> 11) * 0x1p-53 < p; };
  for (const double hard : {0.02, 0.4}) {
    const double rate = 0.8 * hard + 0.2 * 0.5;
    int covered = 0;
    constexpr int evaluations = 2000;
    for (int trial = 0; trial < evaluations; ++trial) {
      std::vector<double> values;
      for (int item = 0; item < 30; ++item) {
        const double p = draw(0.2) ? 0.5 : hard;
        int passed = 0;
        for (int k = 0; k < 8; ++k) passed += draw(p);
        values.push_back(passed / 8.0);
      }
      const auto interval = clustered_interval(values, 8);
      covered += interval.low <= rate && rate <= interval.high;
    }
    EXPECT_GE(covered, 0.94 * evaluations) << hard;
    EXPECT_LE(covered, 0.98 * evaluations) << hard << ": not wider than needed";
  }
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

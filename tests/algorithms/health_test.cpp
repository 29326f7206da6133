// HealthMonitor warns once when a known failure occurs.
#include "algorithms/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace troupe::algorithms {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> check_steps(HealthMonitor& monitor, const std::string& metric,
                                     const std::vector<double>& values, std::int64_t first = 1) {
  std::vector<std::string> all;
  for (const double value : values)
    for (auto& warning : monitor.check(first++, {{metric, value}}))
      all.push_back(std::move(warning));
  return all;
}

TEST(HealthMonitor, SaysThatEntropyCollapsed) {
  HealthMonitor monitor;
  EXPECT_THAT(check_steps(monitor, "entropy", {2, 1.8, 1.5, 1.2, 1.1, 0.9, 0.5, 0.21, 0.19, 0.18}),
              IsEmpty());
  EXPECT_THAT(check_steps(monitor, "entropy", {0.17}, 11),
              ElementsAre(HasSubstr("step 11: entropy is 0.17, below 0.1 times its initial 2")));
  EXPECT_THAT(check_steps(monitor, "entropy", {0.16, 0.15, 0.1}, 12), IsEmpty())
      << "it was said already";
}

TEST(HealthMonitor, SpeaksAgainWhenItComesBack) {
  HealthMonitor monitor;
  EXPECT_EQ(check_steps(monitor, "kl", {0.1, 2, 3, 4, 5, 0.1, 2, 2, 2}).size(), 2u);
  EXPECT_THAT(check_steps(monitor, "kl", {0.1, 2, 3, 0.5, 4, 5}), IsEmpty())
      << "never three steps in a row";
}

TEST(HealthMonitor, SaysThatGroupsAreAllEqualThatTokensAreClippedAndThatNothingIsLearned) {
  HealthMonitor monitor;
  EXPECT_EQ(check_steps(monitor, "frac_reward_zero_std", std::vector<double>(10, 0.95)).size(), 1u);
  EXPECT_EQ(check_steps(monitor, "clip_ratio/region_mean", {0.6, 0.7, 0.8}).size(), 1u);
  EXPECT_EQ(check_steps(monitor, "grad_norm", {0, 0, 0}).size(), 1u);
  EXPECT_THAT(check_steps(monitor, "grad_norm", {1e-9, 1e-9, 1e-9}), IsEmpty());
}

TEST(HealthMonitor, EveryRuleHasAdviceAndABoundThatCanBeReached) {
  std::set<std::string_view> metrics;
  for (const HealthRule& rule : health_rules()) {
    EXPECT_TRUE(metrics.insert(rule.metric).second) << rule.metric;
    EXPECT_GE(rule.steps, 1);
    EXPECT_GT(rule.advice.size(), 20u) << rule.metric;
  }
}

}  // namespace
}  // namespace troupe::algorithms

// Advantages against published numbers (float64, computed independently), to 1e-9.
#include "algorithms/advantage.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/check.h"

namespace troupe::algorithms {
namespace {

const std::vector<double> rewards{0.2, 0.5, 0.9, 0.4};
const double nan_ = std::nan("");

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-9) << "sample " << i;
}

TEST(GroupAdvantages, HaveThePublishedValuesOfEachTool) {
  expect_near(group_advantages(rewards, 4).values, {-1.0187032944, 0, 1.3582710592, -0.3395677648});
  expect_near(group_advantages(rewards, 4, GroupScale::group, 1e-6).values, {-1.0190458692, 0, 1.3587278256, -0.3396819564});
  expect_near(group_advantages(rewards, 4, GroupScale::group, 1e-9).values, {-1.0190493273, 0, 1.3587324364, -0.3396831091});
  expect_near(group_advantages(rewards, 4, GroupScale::none).values, {-.3, 0, .4, -.1});
  expect_near(group_advantages(std::vector<double>{1, 0, 0, 0}, 4).values, {1.4997000600, -0.4999000200, -0.4999000200, -0.4999000200});
}

TEST(GroupAdvantages, LeaveOneOutHasThePublishedValues) {
  expect_near(leave_one_out(rewards, 4).values, {-.4, 0, .5333333333, -.1333333333});
}

TEST(GroupAdvantages, ScaledByTheBatchDivideByTheDeviationOfAllRewards) {
  const std::vector<double> two{0, 1, 5, 7};
  const double deviation = std::sqrt((3.25 * 3.25 + 2.25 * 2.25 + 1.75 * 1.75 + 3.75 * 3.75) / 3);
  const auto out = group_advantages(two, 2, GroupScale::batch);
  expect_near(out.values, {-.5 / (deviation + 1e-4), .5 / (deviation + 1e-4), -1 / (deviation + 1e-4), 1 / (deviation + 1e-4)});
  EXPECT_NEAR(out.deviation, deviation, 1e-12);
  EXPECT_EQ(out.mean, 3.25);
}

TEST(GroupAdvantages, AFailedRewardGetsZeroAndIsInNoMean) {
  const auto out = group_advantages(std::vector<double>{0.2, nan_, 0.5, 0.9, 0.4, nan_, nan_, nan_, nan_, nan_}, 5);
  expect_near(out.values, {-1.0187032944, 0, 0, 1.3582710592, -0.3395677648, 0, 0, 0, 0, 0});
  EXPECT_EQ(out.failed, 6);
  EXPECT_EQ(out.groups, 1);
  EXPECT_NEAR(out.mean, 0.5, 1e-12);
  expect_near(leave_one_out(std::vector<double>{nan_, 1, 3}, 3).values, {0, -2, 2});
}

TEST(GroupAdvantages, AGroupOfEqualRewardsGivesExactlyZeroAndIsCounted) {
  const auto out = group_advantages(std::vector<double>{0.1, 0.1, 0.1, 0, 1, 0}, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(out.values[static_cast<std::size_t>(i)], 0);
  EXPECT_EQ(out.flat, 1);
  EXPECT_EQ(out.groups, 2);
}

TEST(GroupAdvantages, AGroupOfOneGivesZero) {
  EXPECT_EQ(group_advantages(std::vector<double>{0.7}, 1).values, (std::vector<double>{0}));
  EXPECT_EQ(leave_one_out(std::vector<double>{0.7}, 1).values, (std::vector<double>{0}));
}

TEST(GroupAdvantages, AnIncompleteGroupIsABug) {
  EXPECT_THROW(group_advantages(rewards, 3), Bug);
  EXPECT_THROW(leave_one_out(rewards, 0), Bug);
}

TEST(GroupAdvantages, SpreadOverTheTokensOfTheirSequence) {
  EXPECT_EQ(per_token(std::vector<double>{1, -2}, {0, 2, 5}), (std::vector<float>{1, 1, -2, -2, -2}));
}

}  // namespace
}  // namespace troupe::algorithms

// Advantages against published numbers (float64, computed independently), to 1e-9.
#include "algorithms/advantages/advantage.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/errors/check.h"

namespace troupe::algorithms {
namespace {

const std::vector<double> group_rewards{0.2, 0.5, 0.9, 0.4};
const double nan_ = std::nan("");

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-9) << "sample " << i;
}

TEST(GroupAdvantages, HaveThePublishedValuesOfEachTool) {
  expect_near(group_advantages(group_rewards, 4).values,
              {-1.0187032944, 0, 1.3582710592, -0.3395677648});
  expect_near(group_advantages(group_rewards, 4, GroupScale::group, 1e-6).values,
              {-1.0190458692, 0, 1.3587278256, -0.3396819564});
  expect_near(group_advantages(group_rewards, 4, GroupScale::group, 1e-9).values,
              {-1.0190493273, 0, 1.3587324364, -0.3396831091});
  expect_near(group_advantages(group_rewards, 4, GroupScale::none).values, {-.3, 0, .4, -.1});
  expect_near(group_advantages(std::vector<double>{1, 0, 0, 0}, 4).values,
              {1.4997000600, -0.4999000200, -0.4999000200, -0.4999000200});
}

TEST(GroupAdvantages, LeaveOneOutHasThePublishedValues) {
  expect_near(leave_one_out(group_rewards, 4).values, {-.4, 0, .5333333333, -.1333333333});
}

TEST(GroupAdvantages, OfMindSpeedHaveItsPublishedValue) {
  const auto found =
      group_advantages(std::vector<double>{1, 0, 0, 1}, 4, GroupScale::group, 1e-6).values;
  for (const std::size_t i : {0, 1, 2, 3}) EXPECT_NEAR(std::abs(found[i]), 0.8660239, 5e-8);
  EXPECT_GT(found[0], 0);
  EXPECT_LT(found[1], 0);
}

TEST(GroupAdvantages, LeaveOneOutInMeanAndStandardDeviationHasThePublishedValues) {
  expect_near(leave_one_out_scaled(group_rewards, 4).values,
              {-1.5118521778, 0, 3.4914633868, -0.3796621172});
  // The others of a sole winner have equal rewards: its advantage is not scaled.
  expect_near(leave_one_out_scaled(std::vector<double>{1, 0, 0, 0}, 4).values,
              {1, -0.5773492692, -0.5773492692, -0.5773492692});
  expect_near(leave_one_out_scaled(std::vector<double>{1, nan_, 0, 0.5}, 4).values,
              {0.75 / (std::sqrt(0.125) + 1e-6), 0, -0.75 / (std::sqrt(0.125) + 1e-6), 0});
}

TEST(GroupAdvantages, PassAtKPraisesTheBestAlone) {
  expect_near(pass_at_k(group_rewards, 4).values, {0, 0, 1.3587278256, 0});
  expect_near(pass_at_k(std::vector<double>{1, 1, 0}, 3).values, {0, 0, 0});
  expect_near(pass_at_k(std::vector<double>{nan_, 1, nan_}, 3).values, {0, 0, 0});
}

TEST(GroupAdvantages, BaselinesOfTheOtherPapers) {
  const std::vector<double> lengths{10, 20, 30, 40}, two{1, 3, 2, 0}, greedy{2, nan_};
  const double weighed = (2.0 + 10 + 27 + 16) / 100;
  expect_near(length_weighted_baseline(group_rewards, lengths, 4).values,
              {.2 - weighed, .5 - weighed, .9 - weighed, .4 - weighed});
  expect_near(group_policy_gradient(std::vector<double>{1, 0, 0, 0}, 4).values, {3, -1, -1, -1});
  expect_near(relative_to_mean(std::vector<double>{1, 0, 0, 0, 0, 0, 0, 0}, 4).values,
              {3, -1, -1, -1, 0, 0, 0, 0});
  expect_near(against_baseline(two, greedy, 2).values, {-1, 1, 0, 0});
}

TEST(GroupAdvantages, SeveralRewardsMayBeScaledBeforeTheyAreAddedUp) {
  // A single part with any weight is scaled to standard deviation 1, by its group and by the batch.
  const std::vector<double> part{0, 1, 5, 7};
  const double by_group = 0.5 / (std::sqrt(0.5) + 1e-4), of_two = 1 / (std::sqrt(2.0) + 1e-4);
  const double std_dev = std::sqrt((2 * by_group * by_group + 2 * of_two * of_two) / 3) * 3;
  const auto out = normalise_then_sum(part, {part}, std::vector<double>{3}, 2);
  expect_near(out.values, {-3 * by_group / (std_dev + 1e-4), 3 * by_group / (std_dev + 1e-4),
                           -3 * of_two / (std_dev + 1e-4), 3 * of_two / (std_dev + 1e-4)});
  EXPECT_EQ(out.groups, 2);
  // A part with values a thousand times as large has the same influence.
  const std::vector<double> once{1, 1};
  const auto small = normalise_then_sum(part, {{0, 1, 0, 1}, {0, 1, 1, 0}}, once, 2).values;
  const auto large = normalise_then_sum(part, {{0, 1, 0, 1}, {0, 1000, 1000, 0}}, once, 2).values;
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(small[i], large[i], 1e-3);
}

TEST(GroupAdvantages, NormalisedOverTheBatchHaveMeanZeroAndStandardDeviationOne) {
  const auto out = normalised_over_batch(std::vector<double>{1, nan_, 3, 5}, 0);
  expect_near(out, {-1, 0, 0, 1});
}

TEST(ReturnsToGo, AreDiscountedOverTheTrainedTokens) {
  expect_near(returns_to_go(std::vector<double>{1, 2, 9, 4}, std::vector<float>{1, 1, 0, 1}, 0.5),
              {1 + 0.5 * (2 + 0.5 * 4), 2 + 0.5 * 4, 0, 4});
}

TEST(GroupAdvantages, ScaledByTheBatchDivideByTheStandardDeviationOfAllRewards) {
  const std::vector<double> two{0, 1, 5, 7};
  const double std_dev = std::sqrt((3.25 * 3.25 + 2.25 * 2.25 + 1.75 * 1.75 + 3.75 * 3.75) / 3);
  const auto out = group_advantages(two, 2, GroupScale::batch);
  expect_near(out.values, {-.5 / (std_dev + 1e-4), .5 / (std_dev + 1e-4), -1 / (std_dev + 1e-4),
                           1 / (std_dev + 1e-4)});
  EXPECT_NEAR(out.std_dev, std_dev, 1e-12);
  EXPECT_EQ(out.mean, 3.25);
}

TEST(GroupAdvantages, AFailedRewardGetsZeroAndIsInNoMean) {
  const auto out = group_advantages(
      std::vector<double>{0.2, nan_, 0.5, 0.9, 0.4, nan_, nan_, nan_, nan_, nan_}, 5);
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
  EXPECT_THROW(group_advantages(group_rewards, 3), Bug);
  EXPECT_THROW(leave_one_out(group_rewards, 0), Bug);
}

TEST(GroupAdvantages, SpreadOverTheTokensOfTheirSequence) {
  EXPECT_EQ(per_token(std::vector<double>{1, -2}, {0, 2, 5}),
            (std::vector<float>{1, 1, -2, -2, -2}));
}

}  // namespace
}  // namespace troupe::algorithms

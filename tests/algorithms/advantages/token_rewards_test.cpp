// Token rewards from scores and step rewards.
#include "algorithms/advantages/token_rewards.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/base/errors/check.h"

namespace troupe::algorithms {
namespace {

using Numbers = std::vector<double>;

TEST(TokenRewards, AScoreIsScaledClippedAndThenPunishedForAMissingEnd) {
  EXPECT_EQ(shaped(3, true, {}), 3);
  EXPECT_EQ(shaped(3, true, {.scale = 2, .clip = 5}), 5);
  EXPECT_EQ(shaped(-30, true, {.clip = 10}), -10);
  EXPECT_EQ(shaped(3, false, {.missing_eos_penalty = 1}), 2);
  EXPECT_EQ(shaped(-30, false, {.clip = 10, .missing_eos_penalty = 1}), -11)
      << "no clip hides a missing end";
}

TEST(TokenRewards, StepsThatAreSummedStayAsTheyAre) {
  EXPECT_EQ(credited(Numbers{.5, -1, .25}, Credit::sum, 0), (Numbers{.5, -1, .25}));
}

TEST(TokenRewards, StepsUnderTheMinFormSumUpToTheWorst) {
  const Numbers steps{.9, .1, .8};
  // softmax(-r / T) r by hand, T = 0.1: weights e^-8, 1, e^-7 over their sum
  const double total = std::exp(-8) + 1 + std::exp(-7);
  const auto out = credited(steps, Credit::min, 0.1);
  EXPECT_NEAR(out[0], .9 * std::exp(-8) / total, 1e-12);
  EXPECT_NEAR(out[1], .1 / total, 1e-12);
  EXPECT_NEAR(out[2], .8 * std::exp(-7) / total, 1e-12);
  const auto colder = credited(steps, Credit::min, 1e-3);
  EXPECT_NEAR(std::accumulate(colder.begin(), colder.end(), 0.0), .1, 1e-12);
  EXPECT_TRUE(credited(Numbers{}, Credit::min, 0.1).empty());
  EXPECT_EQ(credited(Numbers{-2}, Credit::min, 0.1), (Numbers{-2}));
  EXPECT_THROW(credited(steps, Credit::min, 0), Bug);
}

TEST(TokenRewards, AStepPaysAtItsLastTrainedToken) {
  const std::vector<float> mask{0, 1, 1, 0, 0, 1};
  Numbers rewards(6, 0);
  EXPECT_EQ(add_steps(rewards, mask, std::vector<std::int32_t>{2, 4, 5}, Numbers{1, 2, 4}), 0);
  EXPECT_EQ(rewards, (Numbers{0, 0, 3, 0, 0, 4}))
      << "the step that ends between two answers is paid where it was chosen";
  EXPECT_EQ(add_steps(rewards, mask, std::vector<std::int32_t>{0}, Numbers{8}), 1)
      << "a step of the prompt";
  EXPECT_EQ(last_trained(mask), 5);
  EXPECT_EQ(last_trained(std::vector<float>{0, 0}), -1);
  EXPECT_THROW(add_steps(rewards, mask, std::vector<std::int32_t>{6}, Numbers{1}), Bug);
}

}  // namespace
}  // namespace troupe::algorithms

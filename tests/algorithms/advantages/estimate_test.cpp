// Advantages of tokens from rewards: each estimator on a small rollout step, computed by hand.
#include "algorithms/advantages/estimate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/advantages/token_rewards.h"

namespace troupe::algorithms {
namespace {

using engine::data::Experience;

// Two groups of two answers of 2, 1, 3 and 1 tokens, each after one token of prompt.
Experience round_of_four() {
  Experience b;
  for (const std::size_t answer : {2, 1, 3, 1}) {
    std::vector<float> mask(answer + 1, 1);
    mask[0] = 0;
    b.append(std::vector<std::int32_t>(answer + 1, 5), mask);
  }
  b.old_logp = {0, -1, -2, 0, -1, 0, -1, -1, -1, 0, -3};
  b.reference_logp = {0,  -1.5f, -2,    0, -1.25f, 0,
                      -1, -1.5f, -0.5f, 0, -3};  // x = .5 0 | .25 | 0 .5 -.5 | 0
  return b;
}

void expect_tokens(const Experience& b, const std::vector<double>& expected) {
  ASSERT_EQ(b.advantage.size(), expected.size());
  for (std::size_t t = 0; t < expected.size(); ++t)
    EXPECT_NEAR(static_cast<double>(b.advantage[t]), expected[t], 1e-6) << "token " << t;
}

TEST(Estimate, LeaveOneOutTakesTheSummedKlFromTheReward) {
  auto b = round_of_four();
  const auto found =
      estimate(b, 2, {{1, 0, 0, 2}, {}, {}}, {.estimator = Estimator::rloo, .reward_beta = 0.2});
  // Rewards .9, -.05, 0, 2.
  expect_tokens(b, {.95, .95, .95, -.95, -.95, -2, -2, -2, -2, 2, 2});
  EXPECT_NEAR(found.mean, (.9 - .05 + 0 + 2) / 4, 1e-7);
}

TEST(Estimate, NormalisedOverSamplesHasStandardDeviationOne) {
  auto b = round_of_four();
  estimate(b, 2, {{1, 0, 0, 2}, {}, {}},
           {.estimator = Estimator::rloo, .eps = 0, .normalise = Normalise::samples});
  const double std_dev = std::sqrt((1 + 1 + 4 + 4) / 3.0);
  expect_tokens(b, {1 / std_dev, 1 / std_dev, 1 / std_dev, -1 / std_dev, -1 / std_dev, -2 / std_dev,
                    -2 / std_dev, -2 / std_dev, -2 / std_dev, 2 / std_dev, 2 / std_dev});
}

TEST(Estimate, ReinforcePlusPlusPaysEachTokenWhatItsAnswerStillEarns) {
  auto b = round_of_four();
  const double g = 0.5, beta = 0.2;
  estimate(b, 1, {{1, 0, 0, 2}, {}, {}},
           {.estimator = Estimator::reinforce_pp, .gamma = g, .reward_beta = beta});
  const double last = beta * .5, before = -beta * .5 + g * last;
  expect_tokens(b, {0, -beta * .5 + g * 1, 1, 0, -beta * .25, 0, g * before, before, last, 0, 2});
}

TEST(Estimate, ReinforcePlusPlusIsWhitenedOverTheTrainedTokensInEitherWay) {
  for (const auto variance : {Variance::bessel, Variance::biased}) {
    auto b = round_of_four();
    estimate(b, 1, {{1, 0, 0, 2}, {}, {}},
             {.estimator = Estimator::reinforce_pp,
              .normalise = Normalise::tokens,
              .variance = variance,
              .gamma = 1});
    double sum = 0, squares = 0;
    for (const float a : b.advantage) {
      sum += static_cast<double>(a);
      squares += static_cast<double>(a) * static_cast<double>(a);
    }
    EXPECT_NEAR(sum, 0, 1e-6);
    EXPECT_NEAR(squares / (variance == Variance::bessel ? 6 : 7), 1, 1e-6);
  }
}

TEST(Estimate, ItsBaselineFormIsTheGroupsMeanThenWhitened) {
  auto b = round_of_four();
  estimate(b, 2, {{1, 0, 0, 2}, {}, {}},
           {.scale = GroupScale::none, .normalise = Normalise::tokens});
  // Distances .5 .5 | -.5 | -1 -1 -1 | 1 over seven tokens.
  const double mean = -1.5 / 7, std_dev = std::sqrt((.75 + 4 - 7 * mean * mean) / 6);
  const double up = (.5 - mean) / std_dev, down = (-.5 - mean) / std_dev,
               worst = (-1 - mean) / std_dev, best = (1 - mean) / std_dev;
  expect_tokens(b, {0, up, up, 0, down, 0, worst, worst, worst, 0, best});
}

TEST(Estimate, ReMaxComparesWithTheGreedyAnswer) {
  auto b = round_of_four();
  estimate(b, 2, {{1, 0, 0, 2}, {}, {0.5, 1}}, {.estimator = Estimator::remax});
  expect_tokens(b, {.5, .5, .5, -.5, -.5, -1, -1, -1, -1, 1, 1});
}

TEST(Estimate, AFailedRewardTeachesNothingWhateverTheRule) {
  const double failed = std::nan("");
  for (std::size_t i = 0; i < names_of(Estimator{}).size(); ++i) {
    for (const auto normalise : {Normalise::none, Normalise::samples}) {
      auto b = round_of_four();
      estimate(
          b, 2, {{1, failed, 0, 2}, {}, {0, 0}},
          {.estimator = static_cast<Estimator>(i), .normalise = normalise, .reward_beta = 0.1});
      for (const float a : b.advantage) EXPECT_TRUE(std::isfinite(a)) << names_of(Estimator{})[i];
      if (static_cast<Estimator>(i) != Estimator::reinforce_pp) {
        EXPECT_EQ(b.advantage[4], 0) << names_of(Estimator{})[i];
      }
    }
  }
}

TEST(Shaping, OverlongHasThePublishedValues) {
  const Shaping dapo{.overlong_buffer = 1024};
  EXPECT_EQ(overlong_penalty(3000, 4096, dapo), 0);
  EXPECT_NEAR(overlong_penalty(3500, 4096, dapo), -0.41796875, 1e-12);
  EXPECT_NEAR(overlong_penalty(4000, 4096, dapo), -0.90625, 1e-12);
  EXPECT_NEAR(overlong_penalty(4096, 4096, dapo), -1, 1e-12);
  const Shaping mindspeed{.overlong_buffer = 4096};
  EXPECT_EQ(overlong_penalty(16384, 20480, mindspeed), 0);
  EXPECT_NEAR(overlong_penalty(18432, 20480, mindspeed), -0.5, 1e-12);
  EXPECT_NEAR(overlong_penalty(20480, 20480, mindspeed), -1.0, 1e-12);
}

TEST(Shaping, OverlongIsCappedOrNot) {
  EXPECT_NEAR(overlong_penalty(5120, 4096, {.overlong_buffer = 1024}), -1, 1e-12);
  EXPECT_NEAR(overlong_penalty(5120, 4096, {.overlong_buffer = 1024, .overlong_capped = false}), -2,
              1e-12);
  EXPECT_EQ(overlong_penalty(5120, 4096, {}), 0);
}

TEST(Shaping, AnAnswerThatWasCutMayCountForLessOrForAFixedReward) {
  EXPECT_EQ(shaped_reward(2, 10, 10, true, {.truncated_scale = 0.25}), 0.5);
  EXPECT_EQ(shaped_reward(2, 10, 10, true, {.truncated_scale = -0.5}), -0.5);
  EXPECT_EQ(shaped_reward(2, 9, 10, false, {.truncated_scale = 0.25}), 2);
  EXPECT_EQ(shaped_reward(30, 9, 10, false, {.score = {.scale = 0.5, .clip = 10}}), 10);
}

}  // namespace
}  // namespace troupe::algorithms

// Generalized advantage estimation against published numbers (float64, computed independently), to
// 1e-9.
#include "algorithms/advantages/gae.h"

#include <gtest/gtest.h>

#include "algorithms/advantages/whiten.h"
#include "engine/base/errors/check.h"

namespace troupe::algorithms {
namespace {

using Numbers = std::vector<double>;

const Numbers rewards{0, 0, 0, 1}, values{.1, .2, .3, .4};
const std::vector<float> whole_mask(4, 1.0f), tool_in_between{1, 0, 1, 1};

void expect_near_values(const Numbers& found, const Numbers& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t t = 0; t < found.size(); ++t)
    EXPECT_NEAR(found[t], expected[t], 1e-9) << "token " << t;
}

TEST(Gae, HasThePublishedValues) {
  const auto out = gae(rewards, values, whole_mask, {.gamma = 1, .lambda = .95});
  expect_near_values(out.advantages, {.799675, .7365, .67, .6});
  expect_near_values(out.returns, {.899675, .9365, .97, 1.0});
  expect_near_values(gae(rewards, values, whole_mask, {.gamma = .99, .lambda = .95}).advantages,
                     {.7732904271, .7180121500, .6603, .6});
}

TEST(Gae, HasMindSpeedsOwnValues) {
  const std::vector<float> mask(3, 1.0f);
  const auto out = gae(Numbers{0, 0, 1}, Numbers{.2, .4, .6}, mask, {.gamma = 1, .lambda = .95});
  expect_near_values(out.advantages, {.751, .58, .4});
  expect_near_values(out.returns, {.951, .98, 1.0});
  const auto white = whitened(out.advantages, mask);
  for (std::size_t t = 0; t < 3; ++t)
    EXPECT_NEAR(white[t], (Numbers{.9913442, .0170921, -1.0084363}[t]), 5e-8);
}

TEST(Gae, ATokenThatIsNotTrainedOnIsSteppedOverOrIsAStepOfValueZero) {
  expect_near_values(
      gae(rewards, values, tool_in_between, {.untrained = Untrained::carry}).advantages,
      {.8365, .67, .67, .6});
  expect_near_values(
      gae(rewards, values, tool_in_between, {.untrained = Untrained::zero}).advantages,
      {.789675, .9365, .67, .6});
}

TEST(Gae, SteppingOverATokenIsAsIfItWereNotThere) {
  const auto with = gae(rewards, values, tool_in_between, {.gamma = .9, .lambda = .8});
  const auto without = gae(Numbers{0, 0, 1}, Numbers{.1, .3, .4}, std::vector<float>(3, 1.0f),
                           {.gamma = .9, .lambda = .8});
  expect_near_values({with.advantages[0], with.advantages[2], with.advantages[3]},
                     without.advantages);
}

TEST(Gae, ACutSequenceBootstrapsFromTheStateBehindIt) {
  // The value after the truncation bootstraps: with lambda 0 each token's return is one step and
  // the next value.
  const auto cut = gae(Numbers{0, 0}, Numbers{.1, .2}, std::vector<float>(2, 1.0f),
                       {.gamma = .5, .lambda = 0}, {.value = .8});
  expect_near_values(cut.returns, {.1, .4});
  const auto ended =
      gae(Numbers{0, 0}, Numbers{.1, .2}, std::vector<float>(2, 1.0f), {.gamma = .5, .lambda = 0});
  expect_near_values(ended.returns, {.1, 0});
}

TEST(Gae, ARewardBehindTheEndIsOneMoreStep) {
  // The same sequence with the state after its end as an explicit token.
  const auto longer = gae(Numbers{.3, 0, 1}, Numbers{.1, .2, .5}, std::vector<float>(3, 1.0f),
                          {.gamma = .9, .lambda = .8});
  const auto shorter = gae(Numbers{.3, 0}, Numbers{.1, .2}, std::vector<float>(2, 1.0f),
                           {.gamma = .9, .lambda = .8}, {.value = .5, .reward = 1, .ends = true});
  expect_near_values(shorter.advantages, {longer.advantages[0], longer.advantages[1]});
}

TEST(Gae, ARewardOnAStepCountsFromItBackwards) {
  // Without a critic (values 0) and with lambda 1, the advantage is the discounted sum of the
  // following rewards.
  const Numbers none(4, 0), steps{0, 2, 0, -1};
  expect_near_values(gae(steps, none, whole_mask, {.gamma = .5, .lambda = 1}).advantages,
                     {.875, 1.75, -.5, -1});
}

TEST(Gae, ColumnsOfAnotherLengthAreABug) {
  EXPECT_THROW(gae(rewards, Numbers{1}, whole_mask, {}), Bug);
}

}  // namespace
}  // namespace troupe::algorithms

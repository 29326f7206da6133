// Model selection: directions of metrics, the best step, the counter of early stopping and its
// state in checkpoints.
#include "algorithms/training/model_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace troupe::algorithms {
namespace {

using testing::HasSubstr;

SelectionMetric metric(const char* text) {
  return value_or_throw(selection_metric(text));
}

TEST(SelectionMetric, HasADirection) {
  EXPECT_TRUE(metric("eval/loss").lower);
  EXPECT_FALSE(metric("eval/reward").lower);
  EXPECT_FALSE(metric("eval/pass@8").lower);
  EXPECT_FALSE(metric("eval/rewards/exact_match/mean").lower);
  EXPECT_TRUE(metric("-eval/kl").lower);
  EXPECT_EQ(metric("-eval/kl").name, "eval/kl");
  EXPECT_FALSE(metric("+eval/kl").lower);
  EXPECT_FALSE(metric("+eval/loss").lower) << "a sign takes precedence";
}

TEST(SelectionMetric, WithoutAKnownDirectionNeedsASign) {
  const auto unknown = selection_metric("eval/kl");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().what, HasSubstr("write -eval/kl (lower) or +eval/kl (higher)"));
  EXPECT_THAT(selection_metric("loss").error().what, HasSubstr("a metric of the evaluation"));
  EXPECT_FALSE(selection_metric("eval/"));
}

ModelSelection both(const char* text, std::int64_t patience) {
  return {metric(text), metric(text), patience};
}

TEST(ModelSelection, NamesTheStepOfTheBestValue) {
  auto selection = both("eval/loss", 2);
  EXPECT_EQ(selection.best_step(), 0);
  EXPECT_FALSE(selection.is_best(0));
  selection.observe(1, {{"loss", 9}});
  EXPECT_EQ(selection.best_step(), 0) << "a step without an evaluation";
  selection.observe(2, {{"loss", 9}, {"eval/loss", 3}});
  EXPECT_TRUE(selection.is_best(2));
  selection.observe(4, {{"eval/loss", 2}});
  EXPECT_TRUE(selection.is_best(4));
  selection.observe(6, {{"eval/loss", 2}});
  EXPECT_EQ(selection.best_step(), 4) << "an equal value is not an improvement";
  EXPECT_FALSE(selection.stops());
  selection.observe(8, {{"eval/loss", std::nan("")}});
  EXPECT_TRUE(selection.stops());
  EXPECT_EQ(selection.reason(),
            "eval/loss has not improved for 2 evaluations (best: 2.0000 at step 4)");
}

TEST(ModelSelection, StartsOverAfterAnImprovement) {
  auto selection = both("eval/reward", 2);
  for (const auto& [step, reward] : {std::pair{1, 0.5}, {2, 0.4}, {3, 0.6}, {4, 0.6}})
    selection.observe(step, {{"eval/reward", reward}});
  EXPECT_FALSE(selection.stops());
  EXPECT_EQ(selection.best_step(), 3);
}

TEST(ModelSelection, NeverTakesNanForTheBest) {
  auto selection = both("eval/reward", 9);
  selection.observe(1, {{"eval/reward", std::nan("")}});
  EXPECT_EQ(selection.best_step(), 0);
  selection.observe(2, {{"eval/reward", -1}});
  EXPECT_EQ(selection.best_step(), 2);
}

TEST(ModelSelection, NamesTheMetricsOfAnEvaluationThatLacksTheSelectedOne) {
  auto selection = both("eval/rewards/program/style/mean", 2);
  selection.observe(1, {{"loss", 1}});
  try {
    selection.observe(2, {{"loss", 1}, {"eval/reward", 1}, {"eval/pass@1", 1}});
    FAIL() << "the metric is missing";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.error().what, HasSubstr("it has eval/reward, eval/pass@1"));
  }
}

TEST(ModelSelection, ContinuesFromItsState) {
  auto whole = both("eval/loss", 3), parts = both("eval/loss", 3);
  const std::vector<double> losses{3, 2.5, 2.75, 2.6, 2.7};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i) + 1;
    whole.observe(step, {{"eval/loss", losses[i]}});
    parts.observe(step, {{"eval/loss", losses[i]}});
    auto resumed = both("eval/loss", 3);
    ASSERT_TRUE(resumed.restore(value_or_throw(parse_json(parts.state().dump(), "state"))));
    parts = resumed;
  }
  EXPECT_TRUE(whole.stops());
  EXPECT_TRUE(parts.stops());
  EXPECT_EQ(parts.best_step(), whole.best_step());
  EXPECT_EQ(parts.state(), whole.state());
}

TEST(ModelSelection, ForgetsAnotherMetric) {
  auto by_loss = both("eval/loss", 3);
  by_loss.observe(5, {{"eval/loss", 1}});
  auto by_reward = both("eval/reward", 3);
  ASSERT_TRUE(by_reward.restore(by_loss.state()));
  EXPECT_EQ(by_reward.best_step(), 0);
  EXPECT_FALSE(by_reward.restore(Json(Json::Object{{"keep_best", Json::Object{}}})));
  ASSERT_TRUE(ModelSelection().restore(by_loss.state()));
  EXPECT_TRUE(ModelSelection().state().is_null());
}

}  // namespace
}  // namespace troupe::algorithms

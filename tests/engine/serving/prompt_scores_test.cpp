#include "engine/generate/prompt_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/scoring.h"
#include "tests/engine/generate/tiny_model.h"

namespace troupe::engine::generate {
namespace {

const std::vector<std::int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};

TEST(PromptScores, HaveTheBitsOfTheTrainersLogProbabilities) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  data::Experience batch;
  batch.append(tokens, std::vector<float>(tokens.size(), 1.0F));
  const auto expected = train::logprobs(*model, batch, {.every_token = true});
  const PromptScores scores = score_prompt(*model, ops::Precision::f32, tokens, 0);
  ASSERT_EQ(scores.logp.size(), tokens.size());
  EXPECT_EQ(scores.logp[0], 0.0F);
  for (std::size_t t = 1; t < tokens.size(); ++t) EXPECT_EQ(scores.logp[t], expected[t]) << t;
  EXPECT_TRUE(scores.top.empty());
}

TEST(PromptScores, AlternativesContainTheTokenWithItsLogProbability) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  const auto all = static_cast<int>(model->spec().vocabulary);
  const PromptScores scores = score_prompt(*model, ops::Precision::f32, tokens, all);
  EXPECT_TRUE(scores.top[0].empty());
  for (std::size_t t = 1; t < tokens.size(); ++t) {
    const auto& top = scores.top[t];
    ASSERT_EQ(std::ssize(top), all);
    EXPECT_TRUE(std::ranges::is_sorted(
        top, [](const Alternative& a, const Alternative& b) { return a.logp > b.logp; }));
    const auto own = std::ranges::find(top, tokens[t], &Alternative::id);
    ASSERT_NE(own, top.end());
    EXPECT_EQ(own->logp, scores.logp[t]) << t;
  }
}

TEST(PromptScores, OfOneTokenAreEmpty) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  const std::vector<std::int32_t> one = {7};
  EXPECT_THAT(score_prompt(*model, ops::Precision::f32, one, 2).logp, testing::ElementsAre(0.0F));
}

}  // namespace
}  // namespace troupe::engine::generate

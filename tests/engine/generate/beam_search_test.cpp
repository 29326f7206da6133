#include "engine/generate/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/generate/tiny_model.h"

namespace troupe::engine::generate {
namespace {

using testing::HasSubstr;

class BeamSearchTest : public testing::Test {
 protected:
  static Request request(int beams, std::int32_t tokens, int returned = 1) {
    Request r;
    r.id = 1;
    r.prompt = {3, 1, 4, 1, 5};
    r.params.greedy = true;
    r.params.max_new_tokens = tokens;
    r.params.beams.count = beams;
    r.params.beams.returned = returned;
    return r;
  }
  std::vector<Generation> search(const Request& r, const GeneratorConfig& config = {}) {
    return value_or_throw(beam_search(*model_, r, config));
  }
  std::string refusal(const Request& r, const GeneratorConfig& config = {}) {
    const auto found = beam_search(*model_, r, config);
    return found ? "accepted" : found.error().what;
  }
  std::vector<std::int32_t> whole(const Request& r, const Generation& g) {
    std::vector<std::int32_t> tokens = r.prompt;
    tokens.insert(tokens.end(), g.ids.begin(), g.ids.end());
    return tokens;
  }

  std::unique_ptr<ops::Device> device_ = ops::make_reference_device();
  std::unique_ptr<models::Decoder> model_ = test::tiny_model(*device_);
};

TEST_F(BeamSearchTest, WithAllBeamsItFindsTheBestOfAllSequences) {
  // 37 beams of two tokens cover all 37 x 37 sequences.
  const Request r = request(37, 2);
  double best = -1e30;
  for (std::int32_t first = 0; first < 37; ++first) {
    std::vector<std::int32_t> tokens = r.prompt;
    tokens.insert(tokens.end(), {first, 0});
    const Tensor hidden = test::full_forward(*model_, tokens);
    const std::vector<float> z =
        model_->head().gather_logits(model_->head().logits(hidden, ops::Precision::f32));
    const auto log_p = [&](std::size_t row, std::size_t id) {
      double sum = 0;
      for (std::size_t v = 0; v < 37; ++v)
        sum += std::exp(double{z[row * 37 + v]} - z[row * 37 + id]);
      return -std::log(sum);
    };
    for (std::size_t second = 0; second < 37; ++second)
      best = std::max(best, log_p(4, static_cast<std::size_t>(first)) + log_p(5, second));
  }
  const auto found = search(r);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].score, best / 2, 1e-6);
}

TEST_F(BeamSearchTest, ItsLogProbabilitiesAreTheTrainersBits) {
  for (const int page_size : {1, 3, 16}) {
    const Request r = request(4, 20, 4);
    for (const Generation& g : search(r, {.page_size = page_size, .tokens_per_step = 2})) {
      const std::vector<float> expected = test::trainer_logp(*model_, whole(r, g), 1.0F);
      EXPECT_EQ(g.logp, std::vector<float>(expected.begin() + 5, expected.end()));
      EXPECT_EQ(g.finish, FinishReason::length);
    }
  }
}

TEST_F(BeamSearchTest, PagesAndChunksChangeNothing) {
  const Request r = request(5, 30, 5);
  const auto expected = search(r);
  const auto found = search(r, {.page_size = 2, .tokens_per_step = 1});
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].ids, expected[i].ids);
    EXPECT_EQ(found[i].score, expected[i].score);
  }
}

TEST_F(BeamSearchTest, TheScoreIsTheSumOverThePenalisedLength) {
  Request r = request(3, 6, 3);
  r.params.beams.length_penalty = 0.5;
  const auto found = search(r);
  double before = 0;
  for (const Generation& g : found) {
    double sum = 0;
    for (const float x : g.logp) sum += x;
    EXPECT_NEAR(g.score, sum / std::sqrt(6.0), 1e-5);
    EXPECT_TRUE(before == 0 || g.score <= before);
    before = g.score;
  }
}

TEST_F(BeamSearchTest, EndTokensAndStopStringsEndSequences) {
  const auto letters = [](std::span<const std::int32_t> ids) {
    std::string text;
    for (const std::int32_t id : ids) text += static_cast<char>('A' + id);
    return text;
  };
  const auto free = search(request(2, 8)).front();
  const std::int32_t third = free.ids[2];
  for (const Generation& g : search(request(2, 8, 2), {.eos_ids = {third}})) {
    const auto place = std::ranges::find(g.ids, third);
    EXPECT_TRUE(place == g.ids.end() || place == g.ids.end() - 1);
    EXPECT_EQ(g.finish == FinishReason::stop, place != g.ids.end());
  }
  Request r = request(2, 8);
  r.params.stop_strings = {letters({&free.ids[1], 2})};
  r.params.beams.length_penalty = 0;
  const auto stopped = search(r, {.decode = letters}).front();
  EXPECT_EQ(stopped.ids, std::vector<std::int32_t>(free.ids.begin(), free.ids.begin() + 3));
  EXPECT_EQ(stopped.text, letters({free.ids.data(), 1}));
  EXPECT_EQ(stopped.stop_string, r.params.stop_strings[0]);
  EXPECT_EQ(stopped.finish, FinishReason::stop);
}

TEST_F(BeamSearchTest, DrawsFromAPeakedDistributionAreABeamSearch) {
  // At this temperature scores differ by far more than the noise of the draws.
  for (const int beams : {2, 3, 5}) {
    const auto expected = search(request(beams, 12, beams));
    Request r = request(beams, 12, beams);
    r.params.greedy = false;
    r.params.temperature = 1e-3;
    const auto found = search(r);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].ids, expected[i].ids);
      EXPECT_NEAR(found[i].score, 1e3 * expected[i].score, 1e-3);
    }
  }
}

TEST_F(BeamSearchTest, DrawsAreRepeatedBySeedOnPagesOfAnySize) {
  Request r = request(3, 20, 3);
  r.params.greedy = false;
  r.params.temperature = 1.5;
  r.params.top_k = 20;
  r.params.seed = 4;
  std::vector<std::vector<std::int32_t>> ids;
  for (const Generation& g : search(r)) {
    ids.push_back(g.ids);
    const std::vector<float> expected = test::trainer_logp(*model_, whole(r, g), 1.0F);
    EXPECT_EQ(g.logp, std::vector<float>(expected.begin() + 5, expected.end()));
  }
  const auto again = search(r, {.page_size = 2, .tokens_per_step = 1});
  for (std::size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i].ids, ids[i]);
  r.params.seed = 5;
  EXPECT_NE(search(r).front().ids, ids[0]);
  r.params.seed = 4;
  r.sample_id = 1;
  EXPECT_NE(search(r).front().ids, ids[0]);
}

TEST_F(BeamSearchTest, FiltersLeaveMoreTokensThanThereAreEndTokens) {
  // With top_k 1 two tokens stay for each beam, and three where two tokens end a sequence.
  Request r = request(2, 1, 2);
  r.params.greedy = false;
  r.params.top_k = 1;
  const auto seen = [&](const GeneratorConfig& config) {
    std::set<std::int32_t> out;
    for (r.params.seed = 0; r.params.seed < 60; ++r.params.seed)
      for (const Generation& g : search(r, config)) out.insert(g.ids[0]);
    return out;
  };
  EXPECT_EQ(seen({}).size(), 2U);
  EXPECT_EQ(seen({.eos_ids = {0, 36}}).size(), 3U);
}

TEST_F(BeamSearchTest, WhatItIsNotCombinedWithIsRefusedInWords) {
  Request top = request(2, 4);
  top.params.top_logprobs = 3;
  EXPECT_THAT(refusal(top), HasSubstr("reports no top_logprobs"));
  EXPECT_THAT(refusal(request(2, 4, 3)),
              HasSubstr("num_return_sequences is 3; allowed: 1 to num_beams"));
  EXPECT_THAT(refusal(request(65, 4)),
              HasSubstr("num_beams is 65; allowed: 1 (no beam search) to 64"));
  Request stops = request(2, 4);
  stops.params.stop_strings = {"x"};
  EXPECT_THAT(refusal(stops), HasSubstr("stop strings need a tokenizer"));
  EXPECT_THAT(refusal(request(8, 60), {.pages = 20}),
              HasSubstr("8 beams of 65 tokens need 33 pages of the cache, which may have 20"));
  Generator generator = value_or_throw(Generator::create(*model_, {}));
  EXPECT_THAT(generator.submit(request(2, 4)).error().what, HasSubstr("num_beams is above 1"));
}

TEST_F(BeamSearchTest, RulesThatBanEverythingAreNamed) {
  Request r = request(2, 4);
  for (std::int32_t id = 0; id < 37; ++id) r.params.token_rules.suppress_tokens.push_back(id);
  EXPECT_THROW(search(r), Failure);
}

}  // namespace
}  // namespace troupe::engine::generate

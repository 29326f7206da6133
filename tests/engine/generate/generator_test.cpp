#include "engine/generate/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/base/errors/check.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/generate/tiny_model.h"
#include "tests/support/generate_all.h"

namespace troupe::engine::generate {
namespace {

using testing::Each;
using testing::HasSubstr;

/// Letters for ids: 0 is "a", 1 is "b", ...
std::string letters(std::span<const std::int32_t> ids) {
  std::string text;
  for (const std::int32_t id : ids) text += static_cast<char>('A' + id);
  return text;
}

class GeneratorTest : public testing::Test {
 protected:
  Generator make(GeneratorConfig config = {}) {
    return value_or_throw(Generator::create(*model_, std::move(config)));
  }
  static Request request(std::uint64_t id, std::int32_t tokens = 8) {
    Request r;
    r.id = r.sample_id = id;
    r.prompt = {3, 1, 4, 1, 5};
    r.params.max_new_tokens = tokens;
    return r;
  }
  Generation one(const Request& r, GeneratorConfig config = {}) {
    Generator generator = make(std::move(config));
    return value_or_throw(test::generate_all(generator, {r})).at(0);
  }

  std::unique_ptr<ops::Device> device_ = ops::make_reference_device();
  std::unique_ptr<models::Decoder> model_ = test::tiny_model(*device_);
};

TEST_F(GeneratorTest, EndsAtMaxNewTokens) {
  const Generation g = one(request(1));
  EXPECT_EQ(g.ids.size(), 8U);
  EXPECT_EQ(g.logp.size(), 8U);
  EXPECT_EQ(g.finish, FinishReason::length);
  EXPECT_EQ(g.prompt_tokens, 5);
  EXPECT_EQ(to_string(g.finish), "length");
}

TEST_F(GeneratorTest, EndsWhereTheModelHasNoMorePositions) {
  const Generation g = one(request(1, 1000));
  EXPECT_EQ(g.ids.size(), 91U) << "96 positions, 5 of them the prompt's";
  EXPECT_EQ(g.finish, FinishReason::length);
}

TEST_F(GeneratorTest, AnEndTokenEndsTheOutputAndIsPartOfIt) {
  const Generation free = one(request(1));
  const std::int32_t eos = free.ids[3];
  const Generation g = one(request(1), {.eos_ids = {eos}});
  const auto first = std::ranges::find(free.ids, eos) - free.ids.begin() + 1;
  EXPECT_EQ(g.ids, std::vector<std::int32_t>(free.ids.begin(), free.ids.begin() + first));
  EXPECT_EQ(g.finish, FinishReason::stop);

  Request ignores = request(1);
  ignores.params.ignore_eos = true;
  EXPECT_EQ(one(ignores, {.eos_ids = {eos}}).ids, free.ids);
  Request stops = request(1);
  stops.params.stop_tokens = {eos};
  EXPECT_EQ(one(stops).ids, g.ids);
  Request patient = request(1);
  patient.params.min_new_tokens = 8;
  EXPECT_EQ(one(patient, {.eos_ids = {eos}}).ids.size(), 8U);
}

TEST_F(GeneratorTest, AStopStringEndsTheOutputAndIsCutFromTheText) {
  const std::string free = letters(one(request(1)).ids);
  Request r = request(1);
  r.params.stop_strings = {"never there", free.substr(2, 3)};
  const Generation g = one(r, {.decode = letters});
  const std::size_t at = free.find(free.substr(2, 3));
  EXPECT_EQ(g.finish, FinishReason::stop);
  EXPECT_EQ(g.stop_string, free.substr(2, 3));
  EXPECT_EQ(g.text, free.substr(0, at));
  EXPECT_EQ(letters(g.ids), free.substr(0, at + 3));
  EXPECT_EQ(one(request(1), {.decode = letters}).text, free);
}

TEST_F(GeneratorTest, GreedyIgnoresSeedAndSample) {
  Request a = request(1), b = request(2);
  a.params.greedy = b.params.greedy = true;
  b.params.seed = 5;
  EXPECT_EQ(one(a).ids, one(b).ids);
  EXPECT_NE(one(request(1)).ids, one(request(2)).ids) << "sampled, they differ";
}

TEST_F(GeneratorTest, AlternativesAreTheMostLikelyTokensInOrder) {
  Request r = request(1);
  r.params.greedy = true;
  r.params.top_logprobs = 5;
  const Generation g = one(r);
  ASSERT_EQ(g.top.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_EQ(g.top[i].size(), 5U);
    EXPECT_EQ(g.top[i][0].id, g.ids[i]);
    EXPECT_EQ(g.top[i][0].logp, g.logp[i]);
    for (int k = 1; k < 5; ++k) EXPECT_GE(g.top[i][k - 1].logp, g.top[i][k].logp);
  }
}

TEST_F(GeneratorTest, SamplesOfOnePromptShareItsPages) {
  Generator generator = make({.page_size = 2, .max_sequences = 4});
  std::vector<Request> requests;
  for (std::uint64_t i = 0; i < 4; ++i) requests.push_back(request(i));
  value_or_throw(test::generate_all(generator, requests));
  EXPECT_EQ(generator.stats().shared_pages, 3 * 2);
  EXPECT_EQ(generator.stats().rows, 5 + 3 + 4 * 7)
      << "the prompt once, its last token for each of the others, then decoding";
}

TEST_F(GeneratorTest, CancelReturnsWhatThereIs) {
  Generator generator = make();
  ASSERT_TRUE(generator.submit(request(1)));
  ASSERT_TRUE(generator.submit(request(2)));
  generator.step();
  EXPECT_TRUE(generator.cancel(2));
  EXPECT_FALSE(generator.cancel(2));
  EXPECT_FALSE(generator.cancel(3));
  const auto finished = generator.step();
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].id, 2U);
  EXPECT_EQ(finished[0].finish, FinishReason::cancelled);
  while (!generator.idle()) generator.step();
  EXPECT_EQ(generator.free_pages(), generator.pages());
}

TEST_F(GeneratorTest, EachTokenIsReportedAndTheListenerMayCancel) {
  Generator* self = nullptr;
  std::vector<std::int32_t> heard;
  Generator generator = make({.on_token = [&](const TokenEvent& event) {
    EXPECT_EQ(event.index, std::ssize(heard));
    heard.push_back(event.token);
    if (heard.size() == 3) self->cancel(event.id);
  }});
  self = &generator;
  const Generation g = value_or_throw(test::generate_all(generator, {request(1)})).at(0);
  EXPECT_EQ(g.ids, heard);
  EXPECT_EQ(g.finish, FinishReason::cancelled);
  EXPECT_EQ(heard.size(), 3U);
}

TEST_F(GeneratorTest, TokensCarryTheVersionOfTheirWeights) {
  Generator generator = make();
  ASSERT_TRUE(generator.submit(request(1)));
  for (int i = 0; i < 3; ++i) generator.step();
  const auto other = test::tiny_model(*device_, 2);
  device_->copy(other->parameters().values(), model_->parameters().values());
  generator.weights_changed(7);
  std::vector<Generation> done;
  while (done.empty()) done = generator.step();
  EXPECT_THAT(done[0].versions, testing::ElementsAre(0, 0, 0, 7, 7, 7, 7, 7));
  std::vector<std::int32_t> all = request(1).prompt;
  all.insert(all.end(), done[0].ids.begin(), done[0].ids.end());
  const std::vector<float> now = test::trainer_logp(*model_, all, 1);
  for (std::size_t i = 3; i < 8; ++i)
    EXPECT_EQ(done[0].logp[i], now[5 + i]) << "as if the new weights had read it all";
}

TEST_F(GeneratorTest, ALogitThatIsNotFiniteIsAFailureThatNamesTheRequest) {
  Generator generator = make();
  ASSERT_TRUE(generator.submit(request(41)));
  ASSERT_TRUE(generator.submit(request(42)));
  generator.step();
  auto gain = model_->parameters().at("model.norm.weight").value;
  const std::vector<float> before = ops::to_host(*device_, gain);
  device_->fill(gain, std::numeric_limits<float>::quiet_NaN());
  try {
    generator.step();
    FAIL() << "not a number went unnoticed";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(),
                HasSubstr("request 41 (sample 41), position 6: the logit of token 0 is nan"));
  }
  device_->upload(gain, before);
  std::vector<Generation> done;
  while (done.size() < 2) {
    for (auto& g : generator.step()) done.push_back(std::move(g));
  }
  EXPECT_EQ(done[0].ids, one(request(41)).ids) << "the step can be taken again";
}

TEST_F(GeneratorTest, RefusalsStateWhatIsWrong) {
  Generator generator = make({.page_size = 4, .pages = 4});
  const auto refusal = [&](const std::function<void(Request&)>& change) {
    Request r = request(1);
    change(r);
    const auto result = generator.submit(std::move(r));
    return result ? "accepted" : result.error().what;
  };
  EXPECT_THAT(refusal([](auto& r) { r.prompt.clear(); }),
              HasSubstr("request 1: the prompt is empty"));
  EXPECT_THAT(refusal([](auto& r) { r.prompt.assign(96, 0); }),
              HasSubstr("the prompt has 96 tokens, but the model is limited to 96"));
  EXPECT_THAT(refusal([](auto& r) { r.prompt = {37}; }),
              HasSubstr("token 37 is not in the vocabulary, which ends at 36"));
  EXPECT_THAT(refusal([](auto& r) { r.prompt = {-1}; }),
              HasSubstr("token -1 is not in the vocabulary"));
  EXPECT_THAT(refusal([](auto& r) { r.params.temperature = -1; }),
              HasSubstr("request 1: temperature is -1"));
  EXPECT_THAT(refusal([](auto& r) { r.params.stop_strings = {"x"}; }),
              HasSubstr("stop strings need a tokenizer"));
  EXPECT_THAT(refusal([](auto& r) { r.params.max_new_tokens = 20; }),
              HasSubstr("25 tokens of prompt and output need 6 pages"));
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_THAT(refusal([](auto&) {}), HasSubstr("another unfinished request has this id"));
}

TEST_F(GeneratorTest, GenerateAllLeavesNothingBehindWhenItRefuses) {
  Generator generator = make();
  Request bad = request(2);
  bad.prompt.clear();
  EXPECT_FALSE(test::generate_all(generator, {request(1), bad}));
  EXPECT_TRUE(generator.idle());
  EXPECT_TRUE(test::generate_all(generator, {request(1), request(2)}));
}

TEST_F(GeneratorTest, SizesThatCannotWorkAreRefused) {
  const auto refusal = [&](GeneratorConfig config) {
    const auto result = Generator::create(*model_, std::move(config));
    return result ? "accepted" : result.error().what;
  };
  EXPECT_THAT(refusal({.page_size = 0}), HasSubstr("page_size is 0; allowed: 1 to 4096"));
  EXPECT_THAT(refusal({.max_sequences = 0}), HasSubstr("max_sequences is 0"));
  EXPECT_THAT(refusal({.max_sequences = 64, .tokens_per_step = 63}),
              HasSubstr("tokens_per_step is 63; allowed: max_sequences (64)"));
  EXPECT_THAT(refusal({.pages = -1}), HasSubstr("-1 pages"));
}

}  // namespace
}  // namespace troupe::engine::generate

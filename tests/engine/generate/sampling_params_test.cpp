#include "engine/generate/sampling_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace troupe::engine::generate {
namespace {

using testing::HasSubstr;

std::string refusal(const std::function<void(SamplingParams&)>& change) {
  SamplingParams params;
  change(params);
  const auto result = validate(params, 100);
  if (result) return "accepted";
  EXPECT_EQ(result.error().code, Errc::usage);
  return result.error().what;
}

TEST(SamplingParams, DefaultsAreValid) {
  EXPECT_TRUE(validate(SamplingParams{}, 100));
}

TEST(SamplingParams, TemperatureZeroMeansGreedy) {
  SamplingParams params;
  params.temperature = 0;
  EXPECT_TRUE(validate(params, 100));
  EXPECT_TRUE(params.is_greedy());
}

TEST(SamplingParams, NonsenseIsRefusedWithTheNameTheValueAndWhatIsAllowed) {
  EXPECT_THAT(refusal([](auto& p) { p.temperature = -1; }),
              HasSubstr("temperature is -1; allowed: 0, or at least 0.001, at most 1000"));
  EXPECT_THAT(refusal([](auto& p) { p.temperature = std::numeric_limits<double>::quiet_NaN(); }),
              HasSubstr("temperature is nan"));
  EXPECT_THAT(refusal([](auto& p) { p.temperature = std::numeric_limits<double>::infinity(); }),
              HasSubstr("temperature is inf"));
  EXPECT_THAT(refusal([](auto& p) { p.top_k = -1; }), HasSubstr("top_k is -1"));
  EXPECT_THAT(refusal([](auto& p) { p.top_p = 0; }), HasSubstr("top_p is 0"));
  EXPECT_THAT(refusal([](auto& p) { p.top_p = 1.5; }), HasSubstr("top_p is 1.5"));
  EXPECT_THAT(refusal([](auto& p) { p.min_p = 2; }), HasSubstr("min_p is 2"));
  EXPECT_THAT(refusal([](auto& p) { p.repetition_penalty = 0; }),
              HasSubstr("repetition_penalty is 0"));
  EXPECT_THAT(refusal([](auto& p) { p.max_new_tokens = 0; }), HasSubstr("max_new_tokens is 0"));
  EXPECT_THAT(refusal([](auto& p) { p.min_new_tokens = 17; }),
              HasSubstr("min_new_tokens is 17; allowed: 0 to max_new_tokens"));
  EXPECT_THAT(refusal([](auto& p) { p.top_logprobs = 1001; }), HasSubstr("top_logprobs"));
}

TEST(SamplingParams, WordsAreTokensOfTheModelAndBounded) {
  EXPECT_THAT(refusal([](auto& p) { p.token_rules.suppress_tokens = {100}; }),
              HasSubstr("suppress_tokens: 100 is not a token of this model"));
  EXPECT_THAT(refusal([](auto& p) {
                p.token_rules.bad_words = {{"", {1}}, {"", {}}};
              }),
              HasSubstr("bad_words: a list of 0 ids; allowed: 1 to 1024"));
  EXPECT_THAT(refusal([](auto& p) {
                p.token_rules.bad_words = {{"", {-1}}};
              }),
              HasSubstr("bad_words: -1 is not a token"));
  EXPECT_THAT(refusal([](auto& p) {
                p.token_rules.bad_words = {{"word", {}}};
              }),
              HasSubstr("bad_words: \"word\" is a text, and there is no tokenizer"));
  EXPECT_THAT(refusal([](auto& p) {
                p.token_rules.sequence_bias = {{{1}, 1e7}};
              }),
              HasSubstr("sequence_bias is 1e+07"));
  EXPECT_THAT(refusal([](auto& p) { p.token_rules.forced_last = {100}; }),
              HasSubstr("forced_eos_token_id: 100"));
  EXPECT_THAT(refusal([](auto& p) { p.token_rules.decay_factor = 0; }),
              HasSubstr("exponential_decay_length_penalty is 0"));
  EXPECT_THAT(refusal([](auto& p) { p.eta_cutoff = 1; }), HasSubstr("eta_cutoff is 1"));
  EXPECT_THAT(refusal([](auto& p) { p.beams.length_penalty = 1e9; }),
              HasSubstr("length_penalty is 1e+09"));
}

TEST(SamplingParams, AWordIsBannedAtTheBeginningOfATextAndWithinIt) {
  SamplingParams params;
  params.token_rules.bad_words = {{"cat", {}}, {"", {9}}, {" one", {}}};
  const EncodeText encode = [](std::string_view text) -> Result<std::vector<std::int32_t>> {
    if (text == "one") return std::vector<std::int32_t>{7};
    if (text == " one") return std::vector<std::int32_t>{7};
    return std::vector<std::int32_t>{text.starts_with(' ') ? 4 : 3, 5};
  };
  ASSERT_TRUE(resolve_bad_words(params, encode));
  const std::vector<BadWord> expected{{"", {3, 5}}, {"", {4, 5}}, {"", {9}}, {"", {7}}};
  EXPECT_EQ(params.token_rules.bad_words, expected);
  params.token_rules.bad_words = {{"  ", {}}};
  EXPECT_FALSE(resolve_bad_words(params, encode));
}

TEST(SamplingParams, ADistributionHasNoLengths) {
  SamplingParams params;
  params.top_p = 0.5;
  params.stop_strings = {"x"};
  params.max_new_tokens = 7;
  EXPECT_EQ(params.distribution().top_p, 0.5);
  EXPECT_EQ(params.distribution().max_new_tokens, SamplingParams().max_new_tokens);
  EXPECT_THAT(params.distribution().stop_strings, testing::IsEmpty());
  EXPECT_TRUE(SamplingParams::changes_distribution("no_repeat_ngram_size"));
  EXPECT_TRUE(SamplingParams::changes_distribution("min_new_tokens"));
  EXPECT_FALSE(SamplingParams::changes_distribution("temperature"));
  EXPECT_FALSE(SamplingParams::changes_distribution("max_new_tokens"));
}

TEST(SamplingParams, StopsAreBounded) {
  EXPECT_THAT(refusal([](auto& p) { p.stop_strings = {""}; }), HasSubstr("empty string"));
  EXPECT_THAT(refusal([](auto& p) { p.stop_strings.assign(65, "x"); }), HasSubstr("65 strings"));
  EXPECT_THAT(refusal([](auto& p) { p.stop_strings = {std::string(1025, 'x')}; }),
              HasSubstr("1025 bytes"));
  EXPECT_THAT(refusal([](auto& p) { p.stop_tokens = {100}; }),
              HasSubstr("100 is not a token of this model; allowed: 0 to 99"));
  EXPECT_THAT(refusal([](auto& p) { p.stop_tokens = {-1}; }), HasSubstr("-1 is not a token"));
}

}  // namespace
}  // namespace troupe::engine::generate

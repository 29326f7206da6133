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
              HasSubstr("temperature is -1; allowed: 0 (greedy)"));
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
                p.token_rules.bad_words = {{1}, {}};
              }),
              HasSubstr("bad_words_ids: a list of 0 ids; allowed: 1 to 1024"));
  EXPECT_THAT(refusal([](auto& p) { p.token_rules.bad_words = {{-1}}; }),
              HasSubstr("bad_words_ids: -1 is not a token"));
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

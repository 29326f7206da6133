#include "engine/generate/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::engine::generate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<GenerationConfig> read(std::string_view text) {
  return read_generation_config(value_or_throw(parse_json(text, "g.json")), "g.json");
}

TEST(GenerationConfig, ReadsSettingsAndEndTokens) {
  const auto c = read(
      R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.1, "repetition_penalty": 1.05,
                          "max_new_tokens": 99, "eos_token_id": [151645, 151643], "bos_token_id": 1, "transformers_version": "4.37.0"})");
  ASSERT_TRUE(c);
  EXPECT_FALSE(c->params.greedy);
  EXPECT_EQ(c->params.temperature, 0.6);
  EXPECT_EQ(c->params.top_k, 20);
  EXPECT_EQ(c->params.top_p, 0.95);
  EXPECT_EQ(c->params.min_p, 0.1);
  EXPECT_EQ(c->params.repetition_penalty, 1.05);
  EXPECT_EQ(c->params.max_new_tokens, 99);
  EXPECT_THAT(c->eos_ids, ElementsAre(151645, 151643));
  EXPECT_THAT(c->ignored, IsEmpty());
}

TEST(GenerationConfig, OfTheStoriesModelIsGreedyAndEndsWithTwo) {
  const std::string path = TROUPE_TEST_DATA "/models/stories260k/hf/generation_config.json";
  const auto c = read_generation_config(value_or_throw(read_json(path)), path);
  ASSERT_TRUE(c);
  EXPECT_TRUE(c->params.greedy) << "do_sample is false unless the file says otherwise";
  EXPECT_THAT(c->eos_ids, ElementsAre(2));
  EXPECT_THAT(c->ignored, IsEmpty());
}

TEST(GenerationConfig, ReadsBeamsAndWords) {
  const auto c = read(
      R"({"num_beams": 4, "length_penalty": 0.5, "early_stopping": "never", "num_return_sequences": 2,
                          "bad_words_ids": [[1], [2, 3]], "sequence_bias": [[[4], -1.5]], "suppress_tokens": [5], "stop_strings": "x",
                          "forced_eos_token_id": [6, 7], "exponential_decay_length_penalty": [3, 1.1]})");
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_EQ(c->params.beams.count, 4);
  EXPECT_EQ(c->params.beams.length_penalty, 0.5);
  EXPECT_EQ(c->params.beams.early_stopping, EarlyStopping::never);
  EXPECT_EQ(c->params.beams.returned, 2);
  EXPECT_THAT(c->params.token_rules.bad_words, ElementsAre(BadWord{"", {1}}, BadWord{"", {2, 3}}));
  EXPECT_EQ(c->params.token_rules.sequence_bias.at(0).bias, -1.5);
  EXPECT_THAT(c->params.token_rules.suppress_tokens, ElementsAre(5));
  EXPECT_THAT(c->params.stop_strings, ElementsAre("x"));
  EXPECT_THAT(c->params.token_rules.forced_last, ElementsAre(6, 7));
  EXPECT_EQ(c->params.token_rules.decay_start, 3);
  EXPECT_EQ(c->params.token_rules.decay_factor, 1.1);
}

TEST(GenerationConfig, WhereTokensAreDrawnTopKIsTransformersFifty) {
  EXPECT_EQ(read(R"({"do_sample": true})")->params.top_k, 50);
  EXPECT_EQ(read(R"({"do_sample": true, "top_k": null})")->params.top_k, 50);
  EXPECT_EQ(read(R"({"do_sample": true, "top_k": 0})")->params.top_k, 0);
  EXPECT_EQ(read(R"({})")->params.top_k, 0);
}

TEST(GenerationConfig, LengthsOfPromptAndOutputBecomeLengthsOfTheOutput) {
  const auto c = read(R"({"max_length": 20, "min_length": 8})");
  const auto five = for_prompt(c->params, *c, 5, 256);
  EXPECT_EQ(five->max_new_tokens, 15);
  EXPECT_EQ(five->min_new_tokens, 3);
  EXPECT_EQ(for_prompt(c->params, *c, 9, 256)->min_new_tokens, 0);
  EXPECT_THAT(for_prompt(c->params, *c, 20, 256).error().what,
              HasSubstr("max_length of the model's generation_config.json is 20"));
  SamplingParams said = c->params;
  said.max_new_tokens = 3;
  said.min_new_tokens = 1;
  EXPECT_EQ(for_prompt(said, *c, 5, 256)->max_new_tokens, 3);
  EXPECT_EQ(for_prompt(said, *c, 5, 256)->min_new_tokens, 1);
  EXPECT_EQ(for_prompt(read("{}")->params, *read("{}"), 5, 256)->max_new_tokens, 256);
}

TEST(GenerationConfig, RefusesByNameWhatWouldChangeTheOutputAndNamesWhatItDoesNotKnow) {
  for (const char* setting :
       {R"("guidance_scale": 1.5)", R"("num_beam_groups": 2)", R"("penalty_alpha": 0.6)",
        R"("token_healing": true)", R"("watermarking_config": {"bias": 2.5})"}) {
    const auto c = read("{" + std::string(setting) + "}");
    ASSERT_FALSE(c) << setting;
    EXPECT_EQ(c.error().code, Errc::unsupported);
    EXPECT_THAT(c.error().what, HasSubstr("the output would differ"));
  }
  const auto c = read(
      R"({"guidance_scale": 1.0, "num_beam_groups": 1, "diversity_penalty": 0.0, "token_healing": false,
                          "bad_words_ids": null, "chat_format": "chatml", "use_cache": true, "max_time": 2.5})");
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_THAT(c->ignored, ElementsAre("chat_format", "max_time"));
}

TEST(GenerationConfig, RefusesWrongTypes) {
  EXPECT_THAT(read(R"({"temperature": "hot"})").error().what,
              HasSubstr("g.json: temperature: expected a number, found string"));
  EXPECT_THAT(read(R"({"eos_token_id": [2, "x"]})").error().what,
              HasSubstr("eos_token_id: expected an integer, found string"));
  EXPECT_THAT(read(R"({"eos_token_id": 99999999999})").error().what,
              HasSubstr("eos_token_id is 99999999999; allowed: 0 to"));
  EXPECT_THAT(read(R"({"top_k": 0.5})").error().what, HasSubstr("top_k: expected an integer"));
  EXPECT_THAT(read(R"({"do_sample": 1})").error().what,
              HasSubstr("do_sample: expected true or false, found integer"));
  EXPECT_THAT(read(R"({"early_stopping": "soon"})").error().what,
              HasSubstr("early_stopping: expected true, false or \"never\""));
  EXPECT_THAT(read(R"({"bad_words_ids": [1.5]})").error().what,
              HasSubstr("bad_words_ids: expected a text or a list of ids, found number"));
  EXPECT_THAT(read(R"({"sequence_bias": {"a": 1}})").error().what,
              HasSubstr("sequence_bias: expected a list of pairs [ids, bias]"));
  EXPECT_THAT(read(R"({"max_length": "x"})").error().what,
              HasSubstr("g.json: max_length: expected an integer"));
  EXPECT_THAT(read(R"([])").error().what, HasSubstr("expected an object"));
}

}  // namespace
}  // namespace troupe::engine::generate

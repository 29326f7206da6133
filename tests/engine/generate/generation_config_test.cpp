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
  const auto c = read(R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.1, "repetition_penalty": 1.05,
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

TEST(GenerationConfig, NamesWhatItDoesNotHonour) {
  const auto c = read(R"({"num_beams": 4, "length_penalty": 1.0, "bad_words_ids": null, "diversity_penalty": 0.0, "max_length": 4096})");
  ASSERT_TRUE(c);
  EXPECT_THAT(c->ignored, ElementsAre("num_beams", "max_length"));
}

TEST(GenerationConfig, RefusesWrongTypes) {
  EXPECT_THAT(read(R"({"temperature": "hot"})").error().what, HasSubstr("g.json: temperature: expected a number, found string"));
  EXPECT_THAT(read(R"({"eos_token_id": [2, "x"]})").error().what, HasSubstr("eos_token_id: expected an integer, found string"));
  EXPECT_THAT(read(R"({"eos_token_id": 99999999999})").error().what, HasSubstr("eos_token_id is 99999999999; allowed: 0 to"));
  EXPECT_THAT(read(R"({"top_k": 0.5})").error().what, HasSubstr("top_k: expected an integer"));
  EXPECT_THAT(read(R"({"do_sample": 1})").error().what, HasSubstr("do_sample: expected true or false, found integer"));
  EXPECT_THAT(read(R"([])").error().what, HasSubstr("expected an object"));
}

}  // namespace
}  // namespace troupe::engine::generate

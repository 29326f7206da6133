// The encodings of the Hugging Face library, reproduced id by id and letter by letter.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/base/json/json.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

struct Case {
  const char* name;
  const char* folder;
};

class Encodings : public testing::TestWithParam<Case> {};

TEST_P(Encodings, AreThoseOfTheReferenceLibrary) {
  const Tokenizer tokenizer = value_or_throw(Tokenizer::load(data + "/" + GetParam().folder));
  const Json texts = value_or_throw(read_json(data + "/expected/encodings/texts.json"));
  const Json expected =
      value_or_throw(read_json(data + "/expected/encodings/" + GetParam().name + ".json"));
  ASSERT_EQ(texts.array().size(), expected.find("ids")->array().size());
  ASSERT_GT(texts.array().size(), 50u);
  for (std::size_t i = 0; i < texts.array().size(); ++i) {
    const std::string& text = texts.array()[i].string();
    SCOPED_TRACE(text.substr(0, 200));
    const auto ids = ids_of(expected.find("ids")->array()[i]);
    EXPECT_EQ(tokenizer.encode(text, false), ids);
    EXPECT_EQ(tokenizer.encode(text, true), ids_of(expected.find("ids_with_special")->array()[i]));
    EXPECT_EQ(tokenizer.decode(ids, true),
              expected.find("decoded_skip_special")->array()[i].string());
  }
}

INSTANTIATE_TEST_SUITE_P(Published, Encodings,
                         testing::Values(Case{"stories260k", "models/stories260k/hf"},
                                         Case{"tinystories-656k", "models/tinystories-656k"},
                                         Case{"gpt2", "tokenizers/gpt2"},
                                         Case{"qwen2.5", "tokenizers/qwen2.5"},
                                         Case{"minimind", "tokenizers/minimind"},
                                         Case{"mistral-7b", "tokenizers/mistral-7b"}),
                         [](const auto& chosen) {
                           std::string name = chosen.param.name;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '.' || c == '-'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace troupe::engine::tokenizer

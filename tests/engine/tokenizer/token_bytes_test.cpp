#include "engine/tokenizer/token_bytes.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/base/text/utf8.h"
#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

class TokenBytesTest : public testing::TestWithParam<const char*> {
 protected:
  std::string joined(const std::vector<TokenId>& ids) const {
    std::string out;
    for (const TokenId id : ids) out += found_.bytes.at(static_cast<std::size_t>(id));
    return out;
  }
  void expect_encoded_texts();
  void expect_any_order();

  Tokenizer tokenizer_ = value_or_throw(Tokenizer::load(data + "/" + GetParam()));
  TokenBytes found_ = token_bytes(tokenizer_, tokenizer_.vocab_size());
};

// The rare characters are written as their bytes.
void TokenBytesTest::expect_encoded_texts() {
  for (const char* text :
       {"abc  de\n\t x", "a\u00e9 \u4e2d\u6587 \U0001F600!", "a\u07ff\U0010FFFF\uFFFD\u0800"}) {
    const auto ids = tokenizer_.encode(text, false);
    const std::string bytes = joined(ids);
    EXPECT_EQ(bytes.starts_with(' ') ? bytes.substr(1) : bytes, tokenizer_.decode(ids, true));
  }
}

void TokenBytesTest::expect_any_order() {
  std::mt19937 random(5);
  const auto first = tokenizer_.encode("a", false);
  const std::string before = tokenizer_.decode(first, true);
  for (int n = 0; n < 200; ++n) {
    std::vector<TokenId> ids;
    while (ids.size() < 6) {
      const auto id = static_cast<TokenId>(random() % found_.bytes.size());
      const std::string bytes = joined({id});
      if (repair_utf8(bytes) == bytes) ids.push_back(id);
    }
    std::vector<TokenId> all = first;
    all.insert(all.end(), ids.begin(), ids.end());
    EXPECT_EQ(before + joined(ids), tokenizer_.decode(all, true));
  }
}

// One test per folder: its tokenizer is read once.
TEST_P(TokenBytesTest, AreThoseOfDecodedTexts) {
  const std::string folder = GetParam();
  EXPECT_EQ(found_.drops_first_space,
            folder == "models/stories260k/hf" || folder == "tokenizers/mistral-7b");
  expect_encoded_texts();
  expect_any_order();
}

INSTANTIATE_TEST_SUITE_P(Folders, TokenBytesTest,
                         testing::Values("models/stories260k/hf", "tokenizers/gpt2",
                                         "tokenizers/qwen2.5", "tokenizers/mistral-7b"));

}  // namespace
}  // namespace troupe::engine::tokenizer

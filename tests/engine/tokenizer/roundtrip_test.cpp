// Properties for any text: decoding inverts encoding, and a stream gives the text of the whole.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

Tokenizer open(const std::string& folder) {
  return value_or_throw(Tokenizer::load(data + "/" + folder));
}

/// Any characters, white space and ASCII more often than the rest; never Korean or combining ones,
/// which NFC may change.
std::string any_text(std::uint64_t seed) {
  std::string out;
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  const auto next = [&](std::uint64_t bound) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % bound;
  };
  const std::size_t length = next(60);
  constexpr char32_t others[] = {U'\n',   U'\t',         U'é',      U'ß',      U'Ω',
                                 U'ж',    U'中',         U'日',     U'\u3000', U'\u00a0',
                                 U'🙂', U'\U0010FFFF', U'\u200d', U'▁'};
  while (count_code_points(out) < length) {
    const auto kind = next(4);
    if (kind == 0) append_utf8(out, U' ');
    if (kind == 1) append_utf8(out, others[next(std::size(others))]);
    if (kind > 1) append_utf8(out, static_cast<char32_t>(33 + next(94)));
  }
  return out;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                     bool skip_special) {
  StreamDecoder stream(tokenizer, skip_special);
  std::string out;
  for (const TokenId id : ids) {
    const std::string part = stream.push(id);
    EXPECT_TRUE(valid_utf8(part)) << "a part that ends inside a character";
    out += part;
  }
  return out + stream.finish();
}

TEST(ByteLevelTokenizer, DecodesWhatItEncoded) {
  for (const char* folder : {"tokenizers/gpt2", "tokenizers/qwen2.5", "tokenizers/minimind"}) {
    const Tokenizer tokenizer = open(folder);
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const std::string text = any_text(seed);
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false), false), text)
          << folder << " " << quote(text);
    }
  }
}

TEST(StreamDecoder, GivesWhatTheWholeGives) {
  for (const char* folder :
       {"tokenizers/gpt2", "tokenizers/qwen2.5", "tokenizers/mistral-7b", "models/stories260k/hf",
        "models/tinystories-656k", "models/digit-completion"}) {
    const Tokenizer tokenizer = open(folder);
    const auto size = tokenizer.vocab_size();
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const auto ids = tokenizer.encode(any_text(seed), true);
      EXPECT_EQ(streamed(tokenizer, ids, true), tokenizer.decode(ids, true)) << folder;
      std::vector<TokenId> noise;  // ids in no order that text has: half characters, bytes without
                                   // an end, ids that are no token
      for (std::uint64_t i = 0; i < 30; ++i)
        noise.push_back(static_cast<TokenId>((seed * 7919 + i * i * 104729) % (size + 3)));
      EXPECT_EQ(streamed(tokenizer, noise, false), tokenizer.decode(noise, false)) << folder;
    }
  }
}

TEST(StreamDecoder, WaitsForTheRestOfACharacter) {
  const Tokenizer tokenizer = open("tokenizers/gpt2");
  const auto ids = tokenizer.encode("🙂!", false);
  ASSERT_GT(ids.size(), 2u);
  StreamDecoder stream(tokenizer, true);
  std::string shown;
  for (std::size_t i = 0; i + 2 < ids.size(); ++i) shown += stream.push(ids[i]);
  EXPECT_EQ(shown, "");
  EXPECT_EQ(stream.push(ids[ids.size() - 2]), "🙂");
  EXPECT_EQ(stream.push(ids.back()), "!");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDecoder, ShowsWordsAsTheyCome) {
  const Tokenizer tokenizer = open("models/stories260k/hf");
  const auto ids = tokenizer.encode("Once upon a time", true);
  StreamDecoder stream(tokenizer, true);
  std::string shown;
  for (std::size_t i = 0; i < ids.size(); ++i) shown += stream.push(ids[i]);
  EXPECT_EQ(shown, "Once upon a time");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, TakesSpecialTextAsLettersWhenAsked) {
  const Tokenizer tokenizer = open("tokenizers/qwen2.5");
  const std::string text = "hi<|im_end|>";
  const auto parsed = tokenizer.encode(text, false),
             plain = tokenizer.encode(text, false, SpecialText::plain);
  EXPECT_EQ(parsed.back(), tokenizer.eos_id());
  EXPECT_EQ(std::count(plain.begin(), plain.end(), *tokenizer.eos_id()), 0);
  EXPECT_EQ(tokenizer.decode(plain, true), text);
  EXPECT_EQ(tokenizer.decode(parsed, true), "hi");
}

TEST(Tokenizer, KnowsItsNamedTokens) {
  const Tokenizer qwen = open("tokenizers/qwen2.5");
  EXPECT_FALSE(qwen.bos());
  EXPECT_EQ(qwen.eos()->text, "<|im_end|>");
  EXPECT_EQ(qwen.eos_id(), 151645);
  EXPECT_EQ(qwen.pad_id(), 151643);
  EXPECT_TRUE(qwen.is_special(151645));
  EXPECT_FALSE(qwen.is_special(0));
  const Tokenizer stories = open("models/stories260k/hf");
  EXPECT_EQ(stories.bos_id(), 1);
  EXPECT_EQ(stories.eos_id(), 2);
  EXPECT_FALSE(stories.pad_id());
  EXPECT_EQ(stories.vocab_size(), 512u);
  EXPECT_EQ(stories.token_to_id("<s>"), 1);
  EXPECT_FALSE(stories.token_to_id("no such piece"));
  EXPECT_EQ(stories.id_to_token(1), "<s>");
  EXPECT_EQ(stories.id_to_token(-1), "");
  EXPECT_EQ(stories.id_to_token(512), "");
}

TEST(Tokenizer, MakesOneTokenACharacterOfDigitPrompts) {
  const Tokenizer tokenizer = open("models/digit-completion");
  EXPECT_EQ(tokenizer.encode("12,3:40", false), (std::vector<TokenId>{5, 6, 14, 7, 15, 8, 4}));
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{5, 6, 14, 7}, true), "12,3");
}

TEST(Tokenizer, CountsIllFormedBytesAsReplacementCharacters) {
  const Tokenizer tokenizer = open("tokenizers/gpt2");
  EXPECT_EQ(tokenizer.encode("a\xFF\xE4\xBD", false), tokenizer.encode("a\uFFFD\uFFFD", false));
}

TEST(Tokenizer, TakesAMegabyteOfAnything) {
  for (const char* unit : {"a", " ", "🙂"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    for (const char* folder : {"tokenizers/qwen2.5", "tokenizers/mistral-7b"}) {
      const Tokenizer tokenizer = open(folder);
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false), false), text)
          << folder << ", " << quote(unit);
    }
  }
}

TEST(Tokenizer, GivesTheSameIdsFromALongTextAsFromItsWords) {
  const Tokenizer tokenizer = open("tokenizers/mistral-7b");
  std::string long_text;
  std::vector<TokenId> expected;
  for (const char* word :
       {"once", "upon", "unbelievably", "naïve", "incomprehensible", "日本語", "x<y>=z"}) {
    const auto ids = tokenizer.encode(word, false);
    expected.insert(expected.end(), ids.begin(), ids.end());
    long_text += (long_text.empty() ? "" : " ") + std::string(word);
  }
  ASSERT_GT(long_text.size(), 48u);
  EXPECT_EQ(tokenizer.encode(long_text, false), expected);
}

}  // namespace
}  // namespace troupe::engine::tokenizer

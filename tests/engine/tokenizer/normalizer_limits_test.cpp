// Normalizers of long texts: runs of combining marks have ICU's result in little time, and no
// component makes a text without bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>

#include <fstream>
#include <random>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/growth.h"
#include "engine/tokenizer/normalizers/normalizer.h"
#include "engine/tokenizer/normalizers/unicode.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

using testing::HasSubstr;

std::string by_icu(const std::string& form, const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  const auto* all = form == "NFC"    ? icu::Normalizer2::getNFCInstance(status)
                    : form == "NFD"  ? icu::Normalizer2::getNFDInstance(status)
                    : form == "NFKC" ? icu::Normalizer2::getNFKCInstance(status)
                                     : icu::Normalizer2::getNFKDInstance(status);
  static const icu::UnicodeSet known(UNICODE_STRING_SIMPLE("[:age=9.0:]"), status);
  const icu::FilteredNormalizer2 filtered(*all, known);
  std::string out;
  icu::StringByteSink<std::string> sink(&out);
  filtered.normalizeUTF8(0, text, sink, nullptr, status);
  EXPECT_TRUE(U_SUCCESS(status));
  return out;
}

// Marks of many classes; some that decompose, also under compatibility only, some younger than
// Unicode 9, and letters that end a run.
std::string random_text(std::mt19937& random) {
  static const std::u32string characters =
      U"\u0300\u0316\u0301\u0327\u0345\u05B0\u0344\u0340\u0F71\u0F72\u0F73\u0F81\u3099\uFF9E\uFF9F"
      U"\u07FD\u0334\u1DF6\U0001D165\U0001D16D\u0323\u0308\u093C\u0591";
  static const std::u32string others = U"ae\u00E9\uFDFA\uAC00\u1100\u1161\uFB1D\u0B47\U0001D15E ";
  std::string out;
  for (std::size_t runs = 1 + random() % 4; runs > 0; --runs) {
    append_utf8(out, others[random() % others.size()]);
    for (std::size_t left = random() % 400; left > 0; --left)
      append_utf8(out, random() % 150 == 0 ? others[random() % others.size()]
                                           : characters[random() % characters.size()]);
  }
  return out;
}

TEST(MarkRuns, LongOnesHaveTheFormThatIcuGivesThem) {
  std::mt19937 random(20241124);
  for (const std::string form : {"NFC", "NFD", "NFKC", "NFKD"}) {
    const auto normalizer = make_unicode_normalizer(form);
    for (int i = 0; i < 1000; ++i) {
      const std::string text = random_text(random);
      std::string ours = text;
      normalizer->apply(ours, growth_limit(text.size()));
      ASSERT_EQ(ours, by_icu(form, text)) << form << " of " << quote(text, 2000);
    }
  }
}

TEST(MarkRuns, MarksYoungerThanUnicode9HaveNoClass) {
  std::string text = "a\u07FD\u0334b";
  make_unicode_normalizer("NFC")->apply(text, 1000);
  EXPECT_EQ(text, "a\u07FD\u0334b");
  text = "a\u0316\u0334b";
  make_unicode_normalizer("NFC")->apply(text, 1000);
  EXPECT_EQ(text, "a\u0334\u0316b");
}

std::string refusal(const std::string& normalizer, std::string text) {
  const Json json = value_or_throw(parse_json(normalizer, "normalizer"));
  const auto made = value_or_throw(make_normalizer(&json, "normalizer"));
  try {
    made->apply(text, growth_limit(text.size()));
  } catch (const Failure& failure) {
    return failure.error().what;
  }
  return "";
}

TEST(Growth, IsRefusedWithASentence) {
  const std::string replace =
      R"({"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaaaaaaaaaaaaaa"})";
  EXPECT_EQ(refusal(replace, std::string(3000, 'a')), "");
  EXPECT_THAT(refusal(replace, std::string(100'000, 'a')),
              HasSubstr("the tokenizer's normalizer makes more than 865536 bytes of this text"));
  EXPECT_THAT(refusal(R"({"type":"Sequence","normalizers":[)" + replace + "," + replace + "," +
                          replace + "," + replace + "]}",
                      "aaaaaaaaaa"),
              HasSubstr("makes more than 65616 bytes"));
  EXPECT_EQ(refusal(R"({"type":"NFKC"})", "\uFDFA"), "");
}

// AutoTokenizer leaves special tokens out of decoded text by their ids.
TEST(SpecialTokens, OfTinystoriesAreLeftOutOfDecodedText) {
  const auto tokenizer = value_or_throw(Tokenizer::load(data + "/models/tinystories-656k"));
  const std::vector<TokenId> ids = {0, 1, 2, 80};
  EXPECT_EQ(tokenizer.decode(ids, true), "");
  EXPECT_THAT(tokenizer.decode(ids, false), HasSubstr("<|start_story|>"));
}

}  // namespace
}  // namespace troupe::engine::tokenizer

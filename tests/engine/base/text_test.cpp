#include "engine/base/text/text.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Text, CatJoinsEveryKindOfPiece) {
  EXPECT_EQ(cat("a", 1, ' ', 2.5, std::string("b"), true), "a1 2.5btrue");
}

TEST(Text, NearestFindsATypoAndNothingForNonsense) {
  const std::vector<std::string> known = {"train.learning_rate", "train.steps", "data.path"};
  EXPECT_EQ(nearest("train.learning_rat", known), "train.learning_rate");
  EXPECT_EQ(nearest("zzzzzzzz", known), "");
}

TEST(Text, QuoteEscapesAndCutsOnACharacterBoundary) {
  EXPECT_EQ(quote("a\nb\x01\""), "\"a\\nb\\x01\\\"\"");
  EXPECT_EQ(quote("ab\xc3\xa9z", 3), "\"ab\"...");
}

TEST(Text, ValidUtf8FindsTheFirstWrongByte) {
  EXPECT_TRUE(valid_utf8("h\xc3\xa9llo \xf0\x9f\x99\x82"));
  for (const char* wrong :
       {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xe2\x82", "\xff"}) {
    std::size_t bad = 99;
    EXPECT_FALSE(valid_utf8(std::string("ok") + wrong, &bad));
    EXPECT_EQ(bad, 2u);
  }
}

// ASCII is checked eight bytes at a time, whatever is before and behind it.
TEST(Text, ValidUtf8FindsAWrongByteAtEveryPosition) {
  for (const std::string lead : {"", "\xc3\xa9"})
    for (std::size_t size = 1; size < 40; ++size)
      for (std::size_t at = 0; at < size; ++at) {
        std::string text = lead + std::string(size, 'a');
        EXPECT_TRUE(valid_utf8(text));
        text[lead.size() + at] = '\x80';
        std::size_t bad = 0;
        EXPECT_FALSE(valid_utf8(text, &bad));
        EXPECT_EQ(bad, lead.size() + at);
      }
}

}  // namespace
}  // namespace troupe

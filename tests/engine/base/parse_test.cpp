// Numbers, parts and letters of texts, and base64 by the vectors of RFC 4648.
#include "engine/base/text/parse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>

#include "engine/base/text/base64.h"

namespace troupe {
namespace {

TEST(ParseNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<unsigned>("fF", 16), 255u);
  EXPECT_EQ(parse_number<double>("1e-3"), 1e-3);
  EXPECT_TRUE(std::isinf(parse_number<double>("inf").value_or(0)));
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "0x1", "--1", "1.5", "2147483648"})
    EXPECT_EQ(parse_number<std::int32_t>(text), std::nullopt) << text;
  EXPECT_EQ(parse_number<std::uint32_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1e999"), std::nullopt);
}

TEST(Trim, RemovesTheBlanksAtBothEndsOnly) {
  EXPECT_EQ(trim("  a b "), "a b");
  EXPECT_EQ(trim("   "), "");
  EXPECT_EQ(trim("\ta"), "\ta");
  EXPECT_EQ(trim("\t a\r", " \t\r"), "a");
}

TEST(Split, GivesOnePartMoreThanThereAreSeparators) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("a,,b,", ','), (Parts{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), Parts{""});
}

TEST(AsciiLower, LeavesOtherBytesAlone) {
  EXPECT_EQ(ascii_lower("AZ@[az\xC3\x84"), "az@[az\xC3\x84");
}

TEST(Base64, HasTheVectorsOfTheRfc) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes) << text;
  }
  for (const char* text : {"Zg", "Zg=", "Zg===", "=", "Z?==", "Zg==\n", " Zg=="})
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace troupe

// simdjson beside nlohmann/json, which is the oracle.
#include "engine/base/json/valid_json.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/base/random/random.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

constexpr JsonBounds bounds{.depth = 5, .values = 60, .in_container = 20};

enum class Reads { both, neither, only_library };

// What the parsers make of a text; where both read it, the same.
Reads reads(std::string_view text) {
  const auto fast = parse_valid_json(text, bounds);
  const auto slow = parse_json_with_library(text, "text", bounds);
  if (fast) {
    EXPECT_TRUE(slow.has_value()) << text << ": " << (slow ? "" : slow.error().what);
    EXPECT_TRUE(!slow || (*slow == *fast && slow->dump() == fast->dump())) << text;
  }
  return fast ? Reads::both : slow ? Reads::only_library : Reads::neither;
}

TEST(ValidJson, ReadsWhatTheLibraryReads) {
  for (const char* text :
       {"{}",
        "[]",
        " { } ",
        "\t[\r\n]\n",
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-1",
        "123456789012345678",
        "-0.0",
        "0.1",
        "1.5e3",
        "1E+2",
        "2e-3",
        "-1.25E-10",
        "1e22",
        "5e-324",
        "1.7976931348623157e308",
        R"("")",
        R"("a")",
        R"("ab\"cd\\ef\/gh")",
        R"("\b\f\n\r\t")",
        R"("\u0000\u0041\u00e9\u20AC")",
        R"("\ud83d\ude00 and text behind")",
        "\"\x7f\xc3\xa9\xf0\x9f\x99\x82\"",
        R"({"a":1,"b":[1,2.5,"x",{"c":null}],"":false})",
        R"([[[[[]]]]])",
        R"([{"a":{"b":[{}]}}])",
        R"({"text":"Once upon a time, there was a longer text.","meta":{"n":3}})"})
    EXPECT_EQ(reads(text), Reads::both) << text;
  for (const char* text :
       {"[1234567890123456789]", "[-9223372036854775808]", "[1e-400]", "[1.0000000000000001]",
        "[9007199254740993.0]", "[2.2250738585072011e-308]"})
    EXPECT_EQ(reads(text), Reads::both) << text;
  EXPECT_EQ(reads("[18446744073709551615]"), Reads::only_library);
  EXPECT_EQ(reads('"' + std::string(2 << 20, 'a') + '"'), Reads::only_library);
}

TEST(ValidJson, RefusesWhatTheLibraryRefuses) {
  const std::string twenty = "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0";
  for (const std::string& text : {std::string(""),
                                  std::string(" "),
                                  std::string("[1,]"),
                                  std::string("[,1]"),
                                  std::string("[1 2]"),
                                  std::string("{\"a\":1,}"),
                                  std::string("{\"a\" 1}"),
                                  std::string("{a:1}"),
                                  std::string("{\"a\":1"),
                                  std::string("[1"),
                                  std::string("01"),
                                  std::string("-"),
                                  std::string("+1"),
                                  std::string("1."),
                                  std::string(".5"),
                                  std::string("1e"),
                                  std::string("1e+"),
                                  std::string("0x1"),
                                  std::string("1e400"),
                                  std::string("NaN"),
                                  std::string("Infinity"),
                                  std::string("tru"),
                                  std::string("nulll"),
                                  std::string("\"a"),
                                  std::string("\"a\nb\""),
                                  std::string("\"\x1f\""),
                                  std::string(R"("\x")"),
                                  std::string(R"("\u12")"),
                                  std::string(R"("\u12g4")"),
                                  std::string(R"("\ud800")"),
                                  std::string(R"("\udc00")"),
                                  std::string(R"("\ud800\u0041")"),
                                  std::string("[1] x"),
                                  std::string(R"({"a":1,"b":2,"a":3})"),
                                  std::string("[[[[[[]]]]]]"),
                                  "[0," + twenty + "]",
                                  "[[" + twenty + "],[" + twenty + "],[" + twenty + "]]",
                                  std::string("[\0]", 3)})
    EXPECT_EQ(reads(text), Reads::neither) << text;
  EXPECT_EQ(reads("[" + twenty + "]"), Reads::both);
}

// Texts of random pieces, most of them nearly JSON.
TEST(ValidJson, AgreesWithTheLibraryOnRandomTexts) {
  const std::vector<std::string> pieces = {"{",
                                           "}",
                                           "[",
                                           "]",
                                           ",",
                                           ":",
                                           "\"",
                                           "\"a\"",
                                           "\"b\":",
                                           "\"a\":1",
                                           "\\",
                                           "\\u00e9",
                                           "\\ud83d",
                                           "\\ude00",
                                           "\\n",
                                           "0",
                                           "-12",
                                           "3.5",
                                           "1e3",
                                           ".",
                                           "true",
                                           "null",
                                           " ",
                                           "\n",
                                           "eight or more",
                                           "\xc3\xa9",
                                           "[]",
                                           "{}",
                                           "[1,2]",
                                           "{\"c\":\"d\"}",
                                           "\"\\ud83d\\ude00\"",
                                           "e"};
  std::size_t valid = 0;
  for (std::uint64_t i = 0; i < 60000; ++i) {
    auto draw = [&, at = std::uint64_t{0}](std::size_t below) mutable {
      return static_cast<std::size_t>(uniform_below(below, 5, i, at++));
    };
    std::string text = "[";
    for (std::size_t n = draw(6) + 1; n > 0; --n)
      text += pieces[draw(pieces.size())] + (draw(2) ? "," : "");
    if (text.back() == ',') text.pop_back();
    const Reads found = reads(text + "]");
    EXPECT_NE(found, Reads::only_library) << text;
    valid += found == Reads::both;
  }
  EXPECT_GT(valid, 1000u);
}

}  // namespace
}  // namespace troupe

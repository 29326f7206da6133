#include "actors/roles/rules/math_answer.h"

#include <gtest/gtest.h>

#include <string>

#include "actors/roles/rules/math_number.h"

namespace troupe::actors::rules {
namespace {

TEST(MathAnswer, SpellingsThatMeanTheSameAreEqual) {
  const std::pair<const char*, const char*> same[] = {
      {"72", "72"},
      {" 72 ", "72."},
      {"1,234", "1234"},
      {"1,234,567.50", "1234567.5"},
      {"$18", "18"},
      {"\\$18.00", "18"},
      {"007", "7"},
      {"-0", "0"},
      {"+5", "5"},
      {".5", "0.5"},
      {"1/2", "0.5"},
      {"\\frac{1}{2}", "1/2"},
      {"\\dfrac{1}{2}", "\\tfrac12"},
      {"\\frac1{2}", ".5"},
      {"-\\frac{3}{4}", "-0.75"},
      {"\\frac{-3}{4}", "-3/4"},
      {"2\\frac{1}{2}", "2.5"},
      {"-2\\frac{1}{2}", "-5/2"},
      {"50\\%", "50%"},
      {"50\\%", "50"},
      {"50%", "0.5"},
      {"1e3", "1000"},
      {"2.5E-1", "1/4"},
      {"5 cm", "5"},
      {"5\\text{ cm}^2", "5"},
      {"5\\,\\mathrm{m}", "5 \\text{ m}"},
      {"3 square feet", "3"},
      {"90^\\circ", "90"},
      {"90^{\\circ}", "90°"},
      {"x = 5", "5"},
      {"x=\\frac{1}{3}", "1/3"},
      {"\\text{yes}", "yes"},
      {"{42}", "42"},
      {"\\left( 1, 2 \\right)", "(1,2)"},
      {"\\left[0,1\\right)", "[0,1)"},
      {"2\\pi", "2 \\pi"},
      {"\xe2\x88\x92"
       "3",
       "-3"},
      {"123456789012345678901234567890", "123,456,789,012,345,678,901,234,567,890"},
  };
  for (const auto& [a, b] : same) {
    EXPECT_TRUE(same_answer(a, b)) << a << " and " << b << "; normalized " << normalize_math(a)
                                   << " and " << normalize_math(b);
    EXPECT_TRUE(same_answer(b, a)) << b << " and " << a;
  }
}

TEST(MathAnswer, AnswersThatDifferAreNotEqual) {
  const std::pair<const char*, const char*> different[] = {
      {"72", "73"},
      {"72", "-72"},
      {"72", ""},
      {"", "0"},
      {"1/3", "0.333"},
      {"0.5%", "50%"},
      {"1,2", "12"},
      {"12,34", "1234"},
      {"1/0", "2/0"},
      {"\\frac{1}{0}", "1"},
      {"2x", "2"},
      {"2xy", "2"},
      {"2 pi", "2"},
      {"3 million", "3"},
      {"2\\sqrt{3}", "2"},
      {"5+5", "10"},
      {"2^3", "8"},
      {"1.2.3", "1.2"},
      {"--5", "5"},
      {"x=5=y", "5"},
      {"\\leftarrow", "arrow"},
      {"12345678901234567890", "12345678901234567891"},
      {"nan", "NaN"},
      {"inf", "1e999"},
      {"0x10", "16"},
      {"5 or 6", "5 and 6"},
  };
  for (const auto& [a, b] : different) {
    EXPECT_FALSE(same_answer(a, b)) << a << " and " << b;
    EXPECT_FALSE(same_answer(b, a)) << b << " and " << a;
  }
}

TEST(MathAnswer, ToleranceIsRelative) {
  EXPECT_TRUE(same_answer("1/3", "0.333", 1e-2));
  EXPECT_FALSE(same_answer("1000", "1001", 1e-2)) << "whole numbers are compared digit by digit";
  EXPECT_TRUE(same_answer("1000.0", "1001", 1e-2));
}

TEST(MathAnswer, HashesGiveTheLastMarkedLine) {
  EXPECT_EQ(after_hashes("48/2 = 24\n#### 72"), "72");
  EXPECT_EQ(after_hashes("#### 1\nno, #### 1,234 \nmore"), "1,234");
  EXPECT_EQ(after_hashes("####"), "");
  EXPECT_EQ(after_hashes("### 72"), std::nullopt);
}

TEST(MathAnswer, TheLastNumberOfAText) {
  EXPECT_EQ(last_number("she has 3 apples and 1,250.50 dollars."), "1,250.50");
  EXPECT_EQ(last_number("from 5 to -3"), "-3");
  EXPECT_EQ(last_number("10-3"), "3");
  EXPECT_EQ(last_number("it is 72."), "72");
  EXPECT_EQ(last_number("about .5"), ".5");
  EXPECT_EQ(last_number("none"), std::nullopt);
}

TEST(MathAnswer, TheLastBoxWithItsBracesBalanced) {
  EXPECT_EQ(last_boxed("so \\boxed{1} or \\boxed{\\frac{1}{2}}."), "\\frac{1}{2}");
  EXPECT_EQ(last_boxed("\\fbox{3} then \\boxed{4}"), "4");
  EXPECT_EQ(last_boxed("\\boxed{4} then \\fbox{3}"), "3");
  EXPECT_EQ(last_boxed("\\boxed{\\boxed{5}}"), "5");
  EXPECT_EQ(last_boxed("\\boxed{\\{1,2\\}}"), "\\{1,2\\}");
  EXPECT_EQ(last_boxed("\\boxed{5} \\boxed 6"), "5");
  EXPECT_EQ(last_boxed("\\boxed{5"), std::nullopt);
  EXPECT_EQ(last_boxed("5"), std::nullopt);
}

std::string repeated(std::string_view piece, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += piece;
  return out;
}

TEST(MathAnswer, HostileTextsCostNoMoreThanTheirLength) {
  const std::size_t megabyte = 1u << 20;
  const std::string texts[] = {
      repeated("\\boxed{", megabyte),
      "\\boxed{" + repeated("{", megabyte),
      "\\boxed{" + repeated("{", megabyte / 2) + repeated("}", megabyte / 2) + "}",
      "\\boxed{" + repeated("9", megabyte) + "}",
      repeated("\\boxed ", megabyte),
      repeated("#### ", megabyte),
      "\\boxed{" + repeated("\\frac{", 4000) + "}",
      "\\boxed{" + repeated("\\text{", 600) + repeated("}", 600) + "}",
      "\\boxed{" + repeated("\\left", 3000) + "}",
      repeated(std::string("\0\xff\xfe{\\", 5), megabyte),
      "\\boxed{1e99999999}",
      "\\boxed{" + repeated("1,111", 3000) + "}",
  };
  for (const auto& text : texts) {
    const auto boxed = last_boxed(text);
    EXPECT_FALSE(same_answer(boxed.value_or(text), "72"));
    EXPECT_FALSE(same_answer(after_hashes(text).value_or("no"), "72"));
    EXPECT_FALSE(same_answer(last_number(text).value_or("no"), "72"));
  }
}

}  // namespace
}  // namespace troupe::actors::rules

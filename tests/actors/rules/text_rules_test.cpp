#include "actors/roles/rules/text_rules.h"

#include <gtest/gtest.h>

namespace troupe::actors::rules {
namespace {

TEST(ExactMatch, StripsOnlyWhenAsked) {
  EXPECT_TRUE(exact_match(" 42\n", "42", {}));
  EXPECT_FALSE(exact_match(" 42\n", "42", {.strip = false}));
  EXPECT_FALSE(exact_match("Yes", "yes", {}));
  EXPECT_TRUE(exact_match("Yes", "yEs", {.ignore_case = true}));
  EXPECT_FALSE(exact_match("a  b", "a b", {}));
  EXPECT_TRUE(exact_match("a \n b", "a b", {.collapse_spaces = true}));
  EXPECT_FALSE(exact_match("a b", "ab", {.collapse_spaces = true}));
  EXPECT_TRUE(exact_match("", "  ", {}));
}

TEST(Format, EachTagOnceInOrderAndNothingElse) {
  const std::vector<std::string> tags{"think", "answer"};
  EXPECT_TRUE(has_format("<think>a</think><answer>b</answer>", tags));
  EXPECT_TRUE(has_format("\n<think>a\nb</think>\n <answer></answer>\n", tags));
  EXPECT_FALSE(has_format("", tags));
  EXPECT_FALSE(has_format("<think>a</think>", tags));
  EXPECT_FALSE(has_format("<answer>b</answer><think>a</think>", tags));
  EXPECT_FALSE(has_format("so <think>a</think><answer>b</answer>", tags));
  EXPECT_FALSE(has_format("<think>a</think> so <answer>b</answer>", tags));
  EXPECT_FALSE(has_format("<think>a</think><answer>b</answer> done", tags));
  EXPECT_FALSE(has_format("<think>a<think>a</think></think><answer>b</answer>", tags));
  EXPECT_FALSE(has_format("<think><answer>x</answer></think><answer>b</answer>", tags));
  EXPECT_FALSE(has_format("<think>a</think><answer>b", tags));
}

TEST(InsideTag, GivesTheLastOneOrTheWholeText) {
  EXPECT_EQ(inside_tag("<answer>1</answer> <answer>2</answer>", "answer"), "2");
  EXPECT_EQ(inside_tag("2", "answer"), "2");
  EXPECT_EQ(inside_tag("</answer>", "answer"), "</answer>");
}

TEST(LengthPenalty, HasThePublishedValuesOfDapo) {
  EXPECT_EQ(length_penalty(3000, 0, 4096, 1024), 0);
  EXPECT_EQ(length_penalty(3500, 0, 4096, 1024), -0.41796875);
  EXPECT_EQ(length_penalty(4000, 0, 4096, 1024), -0.90625);
  EXPECT_EQ(length_penalty(4096, 0, 4096, 1024), -1);
  EXPECT_EQ(length_penalty(9999, 0, 4096, 1024), -1);
  EXPECT_EQ(length_penalty(10, 0, 10, 0), 0)
      << "without a buffer the longest length itself is allowed";
  EXPECT_EQ(length_penalty(11, 0, 10, 0), -1);
  EXPECT_EQ(length_penalty(4, 5, 0, 0), -1);
  EXPECT_EQ(length_penalty(5, 5, 0, 0), 0);
}

TEST(Length, CountsCharactersAndWords) {
  EXPECT_EQ(count_characters("aé漢😀"), 4u);
  EXPECT_EQ(count_words("  one two\n three "), 3u);
  EXPECT_EQ(count_words(""), 0u);
}

}  // namespace
}  // namespace troupe::actors::rules

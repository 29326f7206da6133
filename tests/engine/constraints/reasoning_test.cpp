// Reasoning before constrained texts.
#include "engine/constraints/reasoning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/constraints/texts.h"

namespace troupe::engine::constraints {
namespace {

using test::matches;

TEST(Reasoning, OpenEndsWithTheFirstMark) {
  const auto matches_open = [](const char* text) {
    return matches(compile_regex("a+", Reasoning::open), text);
  };
  for (const char* text :
       {"</think>a", "why</think>aa", "<think>\n{\n</think>a", "<</think>a", "</</think>a",
        "</thin</think>a", "<//think></think>a", "\xFF\xC3</think>a"})
    EXPECT_TRUE(matches_open(text)) << text;
  for (const char* text : {"a", "", "</think>", "</think>b", "why</think> a", "</think>a</think>a",
                           "</think></think>a", "</think a"})
    EXPECT_FALSE(matches_open(text)) << text;
}

TEST(Reasoning, OptionalHasItsBeginning) {
  const auto matches_optional = [](const char* text) {
    return matches(compile_choice({"yes", "<no>"}, Reasoning::optional), text);
  };
  for (const char* text : {"yes", "<no>", "<think></think>yes", "<think>a</think><no>"})
    EXPECT_TRUE(matches_optional(text)) << text;
  for (const char* text : {"", "a</think>yes", " <think></think>yes", "<think>yes", "yes</think>"})
    EXPECT_FALSE(matches_optional(text)) << text;
}

// Every text, byte by byte, against a search for the mark.
TEST(Reasoning, AgreesWithASearchForTheMark) {
  Automaton automaton(value_or_throw(compile_regex("[a<]*", Reasoning::open)), {});
  std::mt19937 random(1);
  const std::string letters = "</think>a";
  int found = 0;
  for (int n = 0; n < 20'000; ++n) {
    std::string text;
    for (std::size_t k = random() % 4; k > 0; --k) {
      const std::size_t begin = random() % 8;
      text += letters.substr(begin, 1 + random() % (9 - begin));
    }
    if (random() % 2 == 0) text += "</think>";
    if (random() % 2 == 0) text += "a<";
    const auto at = text.find("</think>");
    const bool expected =
        at != std::string::npos && text.find_first_not_of("a<", at + 8) == std::string::npos;
    found += expected ? 1 : 0;
    EXPECT_EQ(matches(automaton, text), expected) << text;
  }
  EXPECT_GT(found, 4000);
}

TEST(Reasoning, WithoutItTheTextIsTheWhole) {
  EXPECT_TRUE(matches(compile_regex("a"), "a"));
  EXPECT_FALSE(matches(compile_regex("a"), "</think>a"));
}

}  // namespace
}  // namespace troupe::engine::constraints

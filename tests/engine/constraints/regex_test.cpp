#include "engine/constraints/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "engine/base/text/utf8.h"
#include "engine/constraints/code_points.h"
#include "tests/engine/constraints/texts.h"

namespace troupe::engine::constraints {
namespace {

using testing::HasSubstr;

/// All texts of at most `most` characters of `alphabet`.
std::vector<std::string> all_texts(const std::string& alphabet, std::size_t most) {
  std::vector<std::string> out = {""};
  for (std::size_t at = 0; at < out.size() && out[at].size() < most; ++at)
    for (const char each : alphabet) out.push_back(out[at] + each);
  return out;
}

TEST(Regex, MatchesTheTextsThatTheStandardLibraryMatches) {
  const char* patterns[] = {
      "a*", "a+b?", "(ab|ba)+", "a{2}", "a{1,3}b", "(a|b){2,}", "[ab]*1", "[^a]{2}", "(a?){3}b",
      "((a|b)1)*", "a.b", "\\d[a-b]", "\\w\\D", "", "a|", "^ab$", "^a|b$", "(?:a|b1)*", "a*?b",
      "[a\\-1]+", "(a*)*b", "(a|ab)(1|b)", "[\\d-]+", "\\x61\\u0062", "(|a)(|b)",
      // Repetitions in repetitions, of what may be empty and of what has several lengths.
      "(a?b?){2,3}", "(a?){3}", "((a|b?){0,2}1?){1,3}", "(a{0,2}){2}", "(a|ab){1,3}1",
      "((a?){2,3}b){0,2}", "(a{2,3}){2,3}", "(a|aa){2,3}", "((a|ab){2}|b?){0,2}", "(a*){2}b{2,}",
      "(ab?){0,3}(ba?){1,2}", "((a{0,2}b{0,2}){0,2}1{0,2}){0,2}", "(.?){0,4}", "((.?.?){0,2}1){2}"};
  const auto texts = all_texts("ab1-", 5);
  for (const char* pattern : patterns) {
    Automaton automaton(value_or_throw(compile_regex(pattern)), {});
    const std::regex expected(pattern);
    for (const std::string& text : texts)
      EXPECT_EQ(test::matches(automaton, text), std::regex_match(text, expected))
          << pattern << " on " << text;
  }
}

TEST(Regex, ClassesAreOfCodePoints) {
  EXPECT_TRUE(test::matches(compile_regex("[à-ü]+"), "éèü"));
  EXPECT_FALSE(test::matches(compile_regex("[à-ü]"), "\xC3"));
  EXPECT_FALSE(test::matches(compile_regex("[à-ü]"), "ÿ"));
  EXPECT_TRUE(test::matches(compile_regex(".{3}"), "aé😀"));
  EXPECT_FALSE(test::matches(compile_regex("."), "\xFF"));
  EXPECT_FALSE(test::matches(compile_regex("."), "\xED\xA0\x80"));  // a surrogate
  EXPECT_FALSE(test::matches(compile_regex("."), "\xC0\x80"));      // overlong
  EXPECT_TRUE(test::matches(compile_regex("[^a]"), "\xF4\x8F\xBF\xBF"));
  EXPECT_FALSE(test::matches(compile_regex("[^a]"), "\xF4\x90\x80\x80"));
}

TEST(Regex, EveryRangeOfCodePointsHasExactlyItsEncodings) {
  const char32_t ends[] = {0,      0x41,   0x7F,   0x80,    0x7FF,   0x800,   0xFFF,
                           0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF};
  for (const char32_t low : ends) {
    for (const char32_t high : ends) {
      if (high < low) continue;
      Grammar grammar;
      grammar.set_root(grammar.add_rule());
      const std::vector<CodePointRange> range = {{low, high}};
      grammar.add_empty(add_code_points(grammar, grammar.begin(0), range, TextForm::plain),
                        grammar.end(0));
      value_or_throw(grammar.finish());
      Automaton automaton(std::move(grammar), {});
      for (const char32_t middle : ends) {
        for (const int step : {-1, 0, 1}) {
          const auto value = static_cast<char32_t>(static_cast<std::int64_t>(middle) + step);
          if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) continue;
          std::string text;
          append_utf8(text, value);
          EXPECT_EQ(test::matches(automaton, text), low <= value && value <= high)
              << std::uint32_t{low} << " " << std::uint32_t{high} << " " << std::uint32_t{value};
        }
      }
    }
  }
}

TEST(Regex, MistakesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {{"(a", "( without )"},
                                                       {"a)", "a ) without ("},
                                                       {"[a", "[ without ]"},
                                                       {"*a", "without an atom"},
                                                       {"a{2", "{ without }"},
                                                       {"a{3,2}", "swapped"},
                                                       {"a{70000}", "count above"},
                                                       {"[b-a]", "swapped"},
                                                       {"a**", "two quantifiers"},
                                                       {"\\", "\\ without"},
                                                       {"(?=a)", "not supported"},
                                                       {"\\1", "escape \\1"},
                                                       {"a\\b", "escape \\b"},
                                                       {"a^b", "^ that is not"},
                                                       {"a$b", "$ that is not"},
                                                       {"(?i)a", "not supported"},
                                                       {"a++", "possessive"},
                                                       {"\\xg0", "hexadecimal"},
                                                       {"[^\\d\\D]", "no text satisfies"}};
  for (const auto& [pattern, message] : cases) {
    const auto found = compile_regex(pattern);
    ASSERT_FALSE(found) << pattern;
    EXPECT_THAT(found.error().what, HasSubstr(message)) << pattern;
  }
}

TEST(Regex, HostileExpressionsEndAtALimit) {
  std::string nested(200, '(');
  EXPECT_THAT(compile_regex(nested + std::string(200, ')')).error().what, HasSubstr("nested"));
  EXPECT_EQ(compile_regex(std::string(250'000, 'a')).error().code, Errc::full);
  // States of (a|b)*a(a|b){N} double with every character.
  Automaton automaton(value_or_throw(compile_regex("(a|b)*a(a|b){40}")), {.bytes = 1 << 20});
  EXPECT_THROW(
      {
        std::mt19937 random(1);
        auto state = automaton.start();
        for (int i = 0; i < 100000; ++i) state = automaton.step(state, random() % 2 ? 'a' : 'b');
      },
      Failure);
  EXPECT_THROW(Automaton(value_or_throw(compile_regex("(a|b){9}")), {.work = 5}), Failure);
}

TEST(Regex, ARepetitionIsOneState) {
  for (const char* pattern : {"(((a{1000}){1000}){1000}){1000}", "b{2,9}a{65000}c{65000}d{65000}",
                              "(((([a-y]?){200}){200}){200}){200}"}) {
    const Grammar grammar = value_or_throw(compile_regex(pattern));
    EXPECT_LT(grammar.nodes(), 50U) << pattern;
    EXPECT_LT(grammar.bytes(), 4096U) << pattern;
  }
}

}  // namespace
}  // namespace troupe::engine::constraints

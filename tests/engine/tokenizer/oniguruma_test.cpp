// Regular expressions of tokenizer.json, translated for PCRE2, against Oniguruma itself: every
// class on every code point, and random patterns on random texts.
#include <gtest/gtest.h>
#include <unicode/uchar.h>

#include <random>

#include "engine/base/text/character_classes.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/regex.h"
#include "tests/engine/tokenizer/oniguruma_oracle.h"

namespace troupe::engine::tokenizer {
namespace {

std::vector<Range> ours(const std::string& pattern, const std::string& text) {
  const Regex regex = value_or_throw(Regex::compile(pattern, "test"));
  std::vector<Range> out;
  regex.find_all(text, out);
  return out;
}

// The characters that Unicode 14, which both libraries have here, knows.
std::vector<char32_t> known_characters() {
  std::vector<char32_t> out;
  for (char32_t c = 1; c < 0x20000; ++c) {
    UVersionInfo age;
    u_charAge(static_cast<UChar32>(c), age);
    if ((c < 0xD800 || c >= 0xE000) && age[0] <= 14 && older_equivalent(c) == c) out.push_back(c);
  }
  return out;
}

std::string described(const std::vector<Range>& ranges) {
  std::string out;
  for (const Range& range : ranges) out += cat(" ", range.begin, "-", range.end);
  return out;
}

/// All characters, each between two separators, so that one search tries a class on each of them.
void compare_on_all_characters(const std::string& pattern) {
  static const auto characters = known_characters();
  const Oniguruma theirs(pattern);
  ASSERT_TRUE(theirs.compiled()) << pattern;
  std::string text;
  std::vector<std::size_t> begins;
  for (const char32_t c : characters) {
    text += "\x01";
    begins.push_back(text.size());
    append_utf8(text, c);
  }
  const auto expected = theirs.find_all(text), found = ours(pattern, text);
  if (expected == found) return;
  std::string differ;
  for (std::size_t i = 0; i < characters.size() && differ.size() < 300; ++i) {
    const std::string one = text.substr(begins[i], utf8_length(text[begins[i]]));
    if (theirs.find_all(one) != ours(pattern, one))
      differ += cat(" ", static_cast<std::uint32_t>(characters[i]));
  }
  ADD_FAILURE() << pattern << " differs on" << differ;
}

// [[:punct:]] and \p{Word} are left out: since release 6.9.9, which the library has, they take in
// symbols and superscript digits.
TEST(Oniguruma, ClassesHaveTheSameCharacters) {
  for (const std::string pattern : {R"(\w)",
                                    R"(\W)",
                                    R"(\s)",
                                    R"(\S)",
                                    R"(\d)",
                                    R"(\D)",
                                    R"(\h)",
                                    R"(\H)",
                                    R"(\R)",
                                    "[[:alpha:]]",
                                    "[[:upper:]]",
                                    "[[:lower:]]",
                                    "[[:alnum:]]",
                                    "[[:digit:]]",
                                    "[[:space:]]",
                                    "[[:word:]]",
                                    "[[:xdigit:]]",
                                    "[[:cntrl:]]",
                                    "[[:graph:]]",
                                    "[[:print:]]",
                                    "[[:blank:]]",
                                    "[[:ascii:]]",
                                    R"([^\s\p{L}\p{N}])",
                                    R"([\w'-])",
                                    R"([^\w\s])",
                                    R"([^\r\n\p{L}\p{N}]?\p{L}+)",
                                    R"((?i)k)",
                                    R"((?i:'s|'S))"})
    compare_on_all_characters(pattern);
}

TEST(Oniguruma, PropertiesHaveTheSameCharacters) {
  for (const std::string name :
       {"L",         "Lu",         "Ll",       "Lt",         "Lm",         "Lo",       "M",
        "Mn",        "Mc",         "N",        "Nd",         "Nl",         "No",       "P",
        "Pc",        "Pd",         "Ps",       "S",          "Sc",         "Sk",       "Sm",
        "So",        "Z",          "Zs",       "C",          "Cc",         "Cf",       "Letter",
        "Number",    "Han",        "Hiragana", "Katakana",   "Arabic",     "Latin",    "Greek",
        "Thai",      "Hangul",     "Cyrillic", "Hebrew",     "Devanagari", "Common",   "Inherited",
        "Alpha",     "Upper",      "Lower",    "Alphabetic", "Punct",      "Space",    "Uppercase",
        "Lowercase", "alnum",      "Digit",    "Bengali",    "Tamil",      "Georgian", "Graph",
        "Print",     "White_Space"}) {
    compare_on_all_characters(R"(\p{)" + name + "}");
  }
  for (const std::string name : {"L", "Han", "Alpha"}) {
    compare_on_all_characters(R"(\P{)" + name + "}");
    compare_on_all_characters(R"(\p{^)" + name + "}");
  }
}

TEST(Oniguruma, WordsEndAtTheSameCharacters) {
  static const auto characters = known_characters();
  for (const std::string pattern : {R"(\b)", R"(\B)", R"(\bx)", R"(e\b)"}) {
    const Oniguruma theirs(pattern);
    for (std::size_t from = 0; from < characters.size(); from += 500) {
      std::string text;
      for (std::size_t i = from; i < std::min(from + 500, characters.size()); ++i) {
        text += "e";
        append_utf8(text, characters[i]);
        text += "x ";
        append_utf8(text, characters[i]);
        text += " ";
      }
      ASSERT_EQ(theirs.find_all(text), ours(pattern, text))
          << pattern << " from " << static_cast<std::uint32_t>(characters[from]);
    }
  }
}

/// Random patterns of what tokenizers are written with.
class Patterns {
 public:
  explicit Patterns(std::uint32_t seed) : random_(seed) {}
  std::string pattern() { return alternatives(3); }
  std::string text() {
    std::string out;
    for (std::size_t left = choose(40); left > 0; --left)
      out += one_of({"a",      "b",      "B",      "1",      "2",      " ",          "  ", "\n",
                     "\r\n",   "'",      "s",      "'s",     "S",      "-",          ".",  "\u00e9",
                     "\u4e2d", "\u3002", "\u0301", "\u3042", "\u30fc", "\U0001F600", "_",  "\u212a",
                     "k",      "\t",     "\u00a0", "\u2028", "\u24d0", "\u2160"});
    return out;
  }

 private:
  std::size_t choose(std::size_t below) { return random_() % below; }
  std::string one_of(std::initializer_list<const char*> all) {
    return *(all.begin() + choose(all.size()));
  }
  std::string alternatives(int depth) {
    std::string out = sequence(depth);
    for (std::size_t left = choose(3); left > 0; --left) out += "|" + sequence(depth);
    return out;
  }
  std::string sequence(int depth) {
    std::string out;
    for (std::size_t left = 1 + choose(3); left > 0; --left) out += quantified(depth);
    return out;
  }
  // Anchors are not repeated, and groups, which may match nothing, only in the simplest ways:
  // repeats of nothing differ between the libraries, and so do lazy repeats in atomic groups.
  std::string quantified(int depth) {
    const std::size_t kind = choose(8);
    if (kind == 0)
      return one_of(
          {"(?!\\S)", "(?=a)", "(?<=\\s)", "(?<!b)", R"(\b)", R"(\B)", "^", "$", R"((?!\p{Han}))"});
    if (kind == 1 && depth > 0)
      return one_of({"(", "(?:", "(?i:", "(?m:"}) + alternatives(depth - 1) + ")" +
             one_of({"", "", "?"});
    return atom() + one_of({"", "", "", "", "+", "*", "?", "+?", "*?", "??", "{1,3}", "{2}", "{2,}",
                            "{,2}", "{1,3}?"});
  }
  std::string atom() {
    switch (choose(3)) {
      case 0:
        return one_of({"a", "b", "1", "'", "s", " ", "\\.", "-", "\u4e2d", "\u00e9", "_", "."});
      case 1:
        return one_of({R"(\s)", R"(\S)", R"(\w)", R"(\W)", R"(\d)", R"(\p{L})", R"(\p{N})",
                       R"(\p{Han})", R"(\P{L})", R"(\p{^Han})", R"(\p{M})", R"(\p{Hiragana})"});
      default:
        return one_of({R"([^\s\p{L}\p{N}])", R"([\p{L}\p{M}])", R"([\r\n])", "[a-c1-3]", "[^a]",
                       R"([^\r\n\p{L}])", "[[:alpha:]]", "[[:upper:]_]", R"([\w'-])",
                       R"([\p{Han}\p{Katakana}])", R"([\d\s])"});
    }
  }

  std::mt19937 random_;
};

TEST(Oniguruma, RandomPatternsHaveTheSameMatches) {
  Patterns patterns(20241124);
  int compared = 0, matches = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string pattern = patterns.pattern();
    const auto regex = Regex::compile(pattern, "test");
    if (!regex) continue;
    const Oniguruma theirs(pattern);
    if (!theirs.compiled()) continue;  // it repeats no anchors, for example
    for (int j = 0; j < 5; ++j) {
      const std::string text = patterns.text();
      std::vector<Range> found;
      try {
        regex->find_all(text, found);
      } catch (const Failure&) {
        continue;  // beyond the limit on backtracking
      }
      const auto expected = theirs.find_all(text);
      EXPECT_EQ(expected, found) << pattern << "\non " << quote(text, 200) << "\nexpected"
                                 << described(expected) << "\nfound" << described(found);
      ++compared;
      matches += static_cast<int>(found.size());
    }
  }
  EXPECT_GT(compared, 10'000);
  EXPECT_GT(matches, 10'000);
}

TEST(Oniguruma, ReferencesToGroupsAreRefused) {
  for (const std::string pattern :
       {R"((a)\1)", R"((?<n>a)\k<n>)", R"((?<n>a)\g<n>)", R"((?=(a+))\1*b)"}) {
    const auto regex = Regex::compile(pattern, "test");
    ASSERT_FALSE(regex) << pattern;
    EXPECT_EQ(regex.error().code, Errc::unsupported);
    EXPECT_NE(regex.error().what.find("a reference to a group"), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::engine::tokenizer

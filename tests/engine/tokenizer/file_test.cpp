// tokenizer.json files that are wrong, hostile or unusual.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/base/text/text.h"
#include "engine/tokenizer/base/regex.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe::engine::tokenizer {
namespace {

/// Loads a tokenizer.json with this text.
Result<Tokenizer> load_text(const std::string& text) {
  const std::string path =
      testing::TempDir() + "/troupe_tokenizer_" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << text;
  auto out = Tokenizer::load(path);
  std::filesystem::remove(path);
  return out;
}

/// A file with this model and these further members (", \"normalizer\": ...").
std::string file(const std::string& model, const std::string& rest = "") {
  return cat("{\"model\": ", model, rest, "}");
}

const std::string tiny_model =
    R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";

void expect_refused(const std::string& text, Errc code, const std::string& part) {
  const auto loaded = load_text(text);
  ASSERT_FALSE(loaded) << text;
  EXPECT_EQ(to_string(loaded.error().code), std::string(to_string(code)));
  EXPECT_NE(loaded.error().what.find(part), std::string::npos) << loaded.error().what;
}

TEST(TokenizerFile, NamesWhatIsMissing) {
  const auto loaded = Tokenizer::load("/nowhere/at/all");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Errc::not_found);
  expect_refused("{}", Errc::bad_input, "\"model\" is missing");
  expect_refused("[1", Errc::bad_input, "not valid JSON");
}

TEST(TokenizerFile, RefusesWhatItDoesNotHaveByName) {
  expect_refused(file(R"({"type": "Trigram", "vocab": []})"), Errc::unsupported, "Trigram");
  expect_refused(file(tiny_model, R"(, "normalizer": {"type": "Rot13"})"), Errc::unsupported,
                 "Rot13");
  expect_refused(file(tiny_model, R"(, "pre_tokenizer": {"type": "Sentences"})"), Errc::unsupported,
                 "Sentences");
  expect_refused(file(tiny_model, R"(, "decoder": {"type": "Rhymes"})"), Errc::unsupported,
                 "Rhymes");
  expect_refused(file(tiny_model, R"(, "post_processor": {"type": "Other"})"), Errc::unsupported,
                 "Other");
  expect_refused(
      file(
          tiny_model,
          R"(, "post_processor": {"type": "BertProcessing", "sep": ["x", 4000000], "cls": ["x", 0]})"),
      Errc::bad_input, "it adds the token 4000000, and the vocabulary has");
}

TEST(TokenizerFile, RefusesUnigramPiecesThatAreNone) {
  const auto unigram = [](const std::string& vocab, const std::string& rest = "") {
    return file(R"({"type": "Unigram", "vocab": )" + vocab + rest + "}");
  };
  expect_refused(unigram("{}"), Errc::bad_input, "array of pieces and scores");
  expect_refused(unigram(R"([["a"]])"), Errc::bad_input, "piece 0");
  expect_refused(unigram(R"([["a", "b"]])"), Errc::bad_input, "piece 0");
  expect_refused(unigram(R"([["a", -1.5]])", R"(, "unk_id": 1)"), Errc::bad_input, "unk_id");
  auto loaded = load_text(unigram(R"([["a", -1.5]])"));
  ASSERT_TRUE(loaded) << loaded.error().what;
  EXPECT_EQ(loaded->encode("aa", false), (std::vector<TokenId>{0, 0}));
  EXPECT_THROW(loaded->encode("ab", false), Failure);
}

TEST(TokenizerFile, RefusesCharacterMapsThatPointOutside) {
  const auto with = [](const std::string& map) {
    return file(tiny_model, R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": ")" +
                                map + "\"}");
  };
  expect_refused(with("?"), Errc::bad_input, "base64");
  expect_refused(with(""), Errc::bad_input, "0 bytes long");
  expect_refused(with("/////w=="), Errc::bad_input, "4294967295");
  expect_refused(with("BAAAAAAEAAA="), Errc::bad_input,
                 "points outside");  // one unit, whose children would be far away
}

TEST(TokenizerFile, RefusesWordPiecesWithoutAnUnknownToken) {
  expect_refused(file(R"({"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "?"})"),
                 Errc::bad_input, "\"?\"");
  expect_refused(
      file(
          R"({"type": "WordPiece", "vocab": {"?": 0}, "unk_token": "?", "max_input_chars_per_word": -1})"),
      Errc::bad_input, "max_input_chars_per_word");
}

TEST(TokenizerFile, RefusesContradictoryIds) {
  expect_refused(file(R"({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []})"),
                 Errc::bad_input, "two pieces");
  expect_refused(file(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})"), Errc::bad_input,
                 "-1");
  expect_refused(file(R"({"type": "BPE", "vocab": {"a": 4000000000}, "merges": []})"),
                 Errc::bad_input, "4000000000");
  expect_refused(file(R"({"type": "BPE", "vocab": {"a": 1.5}, "merges": []})"), Errc::bad_input,
                 "1.5");
  expect_refused(file(tiny_model, R"(, "added_tokens": [{"id": 0, "content": "<s>"}])"),
                 Errc::bad_input, "<s>");
  expect_refused(
      file(tiny_model,
           R"(, "added_tokens": [{"id": 5, "content": "<s>"}, {"id": 5, "content": "<t>"}])"),
      Errc::bad_input, "two tokens");
  expect_refused(file(tiny_model, R"(, "added_tokens": [{"id": 99999999999, "content": "<s>"}])"),
                 Errc::bad_input, "99999999999");
}

TEST(TokenizerFile, RefusesMergesOfPiecesThatDoNotExist) {
  expect_refused(file(R"({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]})"),
                 Errc::bad_input, "\"ab\"");
  expect_refused(file(R"({"type": "BPE", "vocab": {"a": 0, "ab": 1}, "merges": [["a", "b"]]})"),
                 Errc::bad_input, "\"b\"");
  expect_refused(file(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]})"), Errc::bad_input,
                 "merge 0");
  expect_refused(file(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [3]})"), Errc::bad_input,
                 "merge 0");
  expect_refused(file(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "?"})"),
                 Errc::bad_input, "\"?\"");
}

TEST(TokenizerFile, RefusesRegularExpressionsThatCannotBeRead) {
  const auto with = [](const std::string& regex) {
    return file(
        tiny_model,
        R"(, "pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": ")" +
            regex + R"("}})");
  };
  expect_refused(with("(a"), Errc::bad_input, "cannot be read");
  expect_refused(with("[a&&b]"), Errc::unsupported, "&&");
  expect_refused(with("a(?i)b|c"), Errc::unsupported, "options in the middle");
  expect_refused(with("[a[b]]"), Errc::unsupported, "class inside a class");
  expect_refused(with(std::string(100'000, 'a')), Errc::bad_input, "100000 bytes");
  expect_refused(with(std::string(1000, '(') + std::string(1000, ')')), Errc::bad_input,
                 "cannot be read");
}

TEST(TokenizerFile, RefusesEndlessNesting) {
  std::string text = R"({"type": "NFC"})";
  for (int i = 0; i < 200; ++i) text = R"({"type": "Sequence", "normalizers": [)" + text + "]}";
  expect_refused(file(tiny_model, ", \"normalizer\": " + text), Errc::bad_input, "nested");
}

TEST(Bpe, MergesThatRunInCirclesStillEnd) {
  // Each piece is made of the other: a merge always shortens the word, so there is an end.
  auto loaded = load_text(file(
      R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "aba": 3, "abab": 4}, "merges": ["a b", "ab a", "aba b", "ab ab"]})"));
  ASSERT_TRUE(loaded) << loaded.error().what;
  EXPECT_EQ(loaded->encode("ababab", false), (std::vector<TokenId>{4, 2}));
}

TEST(Bpe, ShortAndLongWordsMergeAlike) {
  // 32 symbols are merged by scanning, more with the heap: a word of the same syllables must not
  // show where the change is.
  auto loaded = load_text(file(
      R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "bc": 5, "abcabc": 6}, "merges": ["b c", "a b", "ab c", "a bc", "abc abc"]})"));
  ASSERT_TRUE(loaded) << loaded.error().what;
  for (int repeats = 1; repeats < 40; ++repeats) {
    std::string text;
    for (int i = 0; i < repeats; ++i) text += "abc";
    std::vector<TokenId> expected(static_cast<std::size_t>(repeats / 2), 6);
    if (repeats % 2) expected.push_back(4);
    EXPECT_EQ(loaded->encode(text, false), expected) << repeats;
  }
}

TEST(Bpe, MergesOutOfOrderAreDoneByRankAllTheSame) {
  // "ab" and "c" merge before "a" and "b" do, wherever "ab" comes up: no trained table is so, and
  // the library minds nothing.
  auto loaded = load_text(
      file(R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "bc": 5},
    "merges": ["ab c", "a b", "b c"]})"));
  ASSERT_TRUE(loaded) << loaded.error().what;
  std::string text;
  std::vector<TokenId> expected;
  for (int i = 0; i < 30; ++i) {
    text += "abcab";
    expected.insert(expected.end(), {4, 3});
  }
  EXPECT_EQ(loaded->encode(text, false), expected);
}

TEST(Regex, GivesUpOnEndlessBacktracking) {
  for (const char* pattern : {"^(a+)+$", "(a|aa)+$", "^(?:a+){2,9}(?:a+){2,9}$"}) {
    auto regex = Regex::compile(pattern, "test");
    ASSERT_TRUE(regex);
    std::vector<Range> matches;
    EXPECT_THROW(regex->find_all(std::string(2000, 'a') + "b", matches), Failure) << pattern;
  }
}

TEST(Regex, GivesUpOnManySlowMatches) {
  // No single word exceeds the limit of one search; together they exceed that of a text.
  auto regex = Regex::compile("(a+)+b|a+", "test");
  ASSERT_TRUE(regex);
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += std::string(18, 'a') + " ";
  std::vector<Range> matches;
  EXPECT_THROW(regex->find_all(text, matches), Failure);
}

TEST(Regex, FindsWhatOnlyALongSearchFinds) {
  auto regex = Regex::compile("(?:a+)+b|x", "test");
  ASSERT_TRUE(regex);
  const std::string text = "x" + std::string(12, 'a') + "c" + std::string(300, 'a') + "bx";
  std::vector<Range> matches;
  regex->find_all(text, matches);
  EXPECT_EQ(matches, (std::vector<Range>{{0, 1}, {14, 315}, {315, 316}}));
}

TEST(Regex, ReadsOnigurumasSyntax) {
  const auto matches = [](const std::string& pattern, const std::string& text) {
    std::vector<std::string> out;
    auto regex = Regex::compile(pattern, "test");
    if (!regex) return std::vector<std::string>{regex.error().what};
    std::vector<Range> found;
    regex->find_all(text, found);
    for (const Range& range : found)
      out.push_back(text.substr(range.begin, range.end - range.begin));
    return out;
  };
  using Strings = std::vector<std::string>;
  EXPECT_EQ(matches("\\h+", "xyz 12aF g"), (Strings{"12aF"}));
  EXPECT_EQ(matches("\\d{1,2}+", "12345"), (Strings{"12345"}));
  EXPECT_EQ(matches("^.", "ab\ncd"), (Strings{"a", "c"}));
  EXPECT_EQ(matches("(?i)B|c", "abC"), (Strings{"b", "C"}));
  EXPECT_EQ(matches("(?m:a.b)", "a\nb"), (Strings{"a\nb"}));
  EXPECT_EQ(matches("\\s", "a\u180eb\u00a0"), (Strings{"\u00a0"}));
  EXPECT_EQ(matches("", "ab"), (Strings{"", "", ""}));
  EXPECT_EQ(matches("\\p{Han}+", "ab漢字c"), (Strings{"漢字"}));
  EXPECT_EQ(matches("\\p{S}+", "a🩷b"),
            (Strings{"🩷"}));  // Unicode 15, which PCRE2 10.42 does not know
  EXPECT_EQ(matches("\\p{Han}+", "a\U00031350b"), (Strings{"\U00031350"}));  // Unicode 15
  EXPECT_EQ(matches("\\p{L}+", "1\U000105C0.\u1C8A"),
            (Strings{"\U000105C0", "\u1C8A"}));  // Unicode 16
}

TEST(AddedTokens, TakeSpacesAndRespectWordsAsTheySay) {
  const std::string added = R"(, "added_tokens": [
    {"id": 10, "content": "<l>", "lstrip": true, "normalized": false, "special": true},
    {"id": 11, "content": "<r>", "rstrip": true, "normalized": false, "special": true},
    {"id": 12, "content": "ba", "single_word": true, "normalized": false, "special": false},
    {"id": 13, "content": "<r>b", "normalized": false, "special": false}])";
  auto loaded =
      load_text(file(R"({"type": "BPE", "vocab": {"a": 0, "b": 1, " ": 2}, "merges": []})", added));
  ASSERT_TRUE(loaded) << loaded.error().what;
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(loaded->encode("a  <l> a", false), (Ids{0, 10, 2, 0}));
  EXPECT_EQ(loaded->encode("a <r>  a", false), (Ids{0, 2, 11, 0}));
  EXPECT_EQ(loaded->encode("a <r>b", false), (Ids{0, 2, 13}));
  EXPECT_EQ(loaded->encode("ba aba ba", false), (Ids{12, 2, 0, 1, 0, 2, 12}));
}

}  // namespace
}  // namespace troupe::engine::tokenizer

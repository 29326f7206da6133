// Time grows with the length of the text, not faster, for text made to be slow. Processor time of
// the thread is compared between a length and four times that, so that a busy machine does not
// matter.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "engine/base/text/text.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

double thread_seconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string repeat(std::string_view unit, std::size_t bytes) {
  std::string out;
  out.reserve(bytes + unit.size());
  while (out.size() < bytes) out += unit;
  return out;
}

double seconds_for(const Tokenizer& tokenizer, const std::string& text) {
  const double start = thread_seconds();
  const auto ids = tokenizer.encode(text, false);
  EXPECT_LE(ids.size(), text.size() + 1);
  return thread_seconds() - start;
}

constexpr const char* units[] = {"a",  " ", "\n", "🙂",   "\u0301", "ab",  "漢",
                                 "a ", "1", "'",  "\u00a0", "İ",      " \n", "é́̂"};

void expect_linear(const Tokenizer& tokenizer, const std::string& name) {
  // Beyond these bounds is a square term (16 times as long) that takes as long as the linear one (4
  // times) at this length: 20 to 2.
  constexpr std::size_t bytes = 10'000;
  const auto bound = [](double once) { return 9 * once + 0.002; };
  for (const char* unit : units) {
    const std::string text = repeat(unit, bytes), longer = repeat(unit, 4 * bytes);
    double once = 1e9, four = 1e9;
    for (int i = 0; i < 3; ++i)
      once =
          std::min(once, seconds_for(tokenizer, text));  // in the first, tables grow to their size
    for (int i = 0; i < 3 && four >= bound(once); ++i)
      four = std::min(four, seconds_for(tokenizer, longer));
    EXPECT_LT(four, bound(once)) << name << ", repeating " << quote(unit);
  }
}

Tokenizer made(const std::string& text) {
  const std::string path =
      testing::TempDir() + "/troupe_linear_" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << text;
  auto out = value_or_throw(Tokenizer::load(path));
  std::filesystem::remove(path);
  return out;
}

TEST(EncodingTime, GrowsWithTheTextForByteLevelAndSentencePieceTokenizers) {
  for (const char* folder : {"tokenizers/qwen2.5", "tokenizers/gpt2", "tokenizers/mistral-7b",
                             "models/tinystories-656k"})
    expect_linear(value_or_throw(Tokenizer::load(data + "/" + folder)), folder);
}

TEST(EncodingTime, GrowsWithTheTextForSentencePieceModels) {
  for (const char* model :
       {"unigram", "unigram-bytes", "llama-like", "gemma-like", "suffix", "char"})
    expect_linear(
        value_or_throw(Tokenizer::load(data + "/tokenizers/sentencepiece/" + model + ".model")),
        model);
}

TEST(EncodingTime, GrowsWithTheTextForUnigramAndWordPiece) {
  expect_linear(
      made(
          R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1], ["aa", -1.5], ["aaaa", -2.5],
                         ["ab", -2], [" ", -1], ["🙂", -3], ["a ", -1]]}})"),
      "Unigram");
  expect_linear(
      made(R"({"model": {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##",
                         "max_input_chars_per_word": 10000000, "vocab": {"?": 0, "a": 1, "##a": 2, "##aa": 3, "##aaab": 4, "##b": 5}}})"),
      "WordPiece");
}

TEST(EncodingTime, GrowsWithTheTextForEveryNormalizerAndPreTokenizer) {
  const std::string model =
      R"({"model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0}}, )";
  for (const char* type :
       {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Nmt", "ByteLevel"})
    expect_linear(made(model + R"("normalizer": {"type": ")" + type + "\"}}"), type);
  expect_linear(
      made(
          model +
          R"("normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                                 "strip_accents": null, "lowercase": true}})"),
      "BertNormalizer");
  expect_linear(
      made(model +
           R"("normalizer": {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "x"}})"),
      "Replace");
  for (const char* type : {"Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts",
                           "FixedLength", "ByteLevel"})
    expect_linear(made(model + R"("pre_tokenizer": {"type": ")" + type + "\"}}"), type);
  expect_linear(
      made(model + R"("added_tokens": [{"id": 1, "content": " ", "lstrip": true, "rstrip": true},
                                                  {"id": 2, "content": "aaaa", "single_word": true, "normalized": false}]})"),
      "added tokens");
}

}  // namespace
}  // namespace troupe::engine::tokenizer

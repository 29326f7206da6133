// Normalizers, pre-tokenizers, post-processors, decoders and added tokens in many combinations,
// against the Hugging Face library.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

/// Each row of `name` is a tokenizer.json, and what the library makes of some texts with it. The
/// number of rows.
int compare_rows(const std::string& name) {
  const std::string rows = value_or_throw(read_file(data + "/expected/" + name));
  const std::string path =
      testing::TempDir() + "/troupe_parts_" + std::to_string(::getpid()) + ".json";
  int seen = 0;
  for (std::size_t at = 0; at < rows.size(); ++seen) {
    const std::size_t end = std::min(rows.find('\n', at), rows.size());
    const Json row = value_or_throw(parse_json(rows.substr(at, end - at), name));
    at = end + 1;
    std::ofstream(path) << row.find("tokenizer")->dump();
    const auto tokenizer = Tokenizer::load(path);
    EXPECT_TRUE(tokenizer) << "row " << seen + 1 << ": " << tokenizer.error().what;
    if (!tokenizer) continue;
    for (const Json& one : row.find("cases")->array()) {
      const std::string& text = one.find("text")->string();
      SCOPED_TRACE(name + ", row " + std::to_string(seen + 1) + ": " + text);
      const auto ids = ids_of(*one.find("ids"));
      EXPECT_EQ(tokenizer->encode(text, false), ids);
      EXPECT_EQ(tokenizer->encode(text, true), ids_of(*one.find("ids_with_special")));
      EXPECT_EQ(tokenizer->decode(ids, false), one.find("decoded")->string());
      EXPECT_EQ(tokenizer->decode(ids, true), one.find("decoded_skip_special")->string());
      StreamDecoder stream(*tokenizer, false);
      std::string streamed;
      for (const TokenId id : ids) streamed += stream.push(id);
      EXPECT_EQ(streamed + stream.finish(), one.find("decoded")->string());
    }
  }
  std::filesystem::remove(path);
  return seen;
}

TEST(TokenizerParts, WorkTogetherAsInTheReferenceLibrary) {
  EXPECT_EQ(compare_rows("tokenizer_parts.jsonl"), 80);
}

// Metaspace's "first" is any word that begins where the user's text begins.
TEST(TokenizerParts, KnowWhichWordsAreFirstAfterATextWasInsertedBeforeThem) {
  EXPECT_EQ(compare_rows("tokenizer_leading.jsonl"), 8);
}

TEST(TokenizerFamilies, EncodeAndDecodeAsInTheReferenceLibrary) {
  EXPECT_EQ(compare_rows("tokenizer_families.jsonl"), 38);
}

TEST(Tokenizer, GivesEveryThreadTheSame) {
  const Tokenizer tokenizer = value_or_throw(Tokenizer::load(data + "/tokenizers/minimind"));
  const Json texts = value_or_throw(read_json(data + "/expected/encodings/texts.json"));
  std::vector<std::vector<TokenId>> expected;
  for (const Json& text : texts.array()) expected.push_back(tokenizer.encode(text.string(), true));
  std::vector<int> differences(12, 0);  // more threads than places for workspaces
  std::vector<std::thread> threads;
  for (auto& count : differences) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < expected.size(); ++i)
        count += tokenizer.encode(texts.array()[i].string(), true) != expected[i];
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(differences, std::vector<int>(12, 0));
}

}  // namespace
}  // namespace troupe::engine::tokenizer

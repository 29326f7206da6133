// A tokenizer.model alone encodes and decodes exactly as SentencePiece does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/tokenizer/models/sentence_piece_file.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

namespace fs = std::filesystem;

const std::string models = data + "/tokenizers/sentencepiece/";

/// A folder of its own with a tokenizer.model, which goes with the test.
class Folder {
 public:
  explicit Folder(const std::string& model)
      : path_(testing::TempDir() + "/troupe_sp_" + std::to_string(::getpid())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    if (!model.empty()) fs::copy_file(model, path_ + "/tokenizer.model");
  }
  ~Folder() { fs::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string streamed_ids(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  StreamDecoder stream(tokenizer, false);
  std::string out;
  for (const TokenId id : ids) out += stream.push(id);
  return out + stream.finish();
}

TEST(SentencePiece, EncodesAndDecodesAsTheLibraryItself) {
  const std::string rows = value_or_throw(read_file(data + "/expected/sentencepiece.jsonl"));
  int seen = 0;
  for (std::size_t at = 0; at < rows.size(); ++seen) {
    const std::size_t end = std::min(rows.find('\n', at), rows.size());
    const Json row = value_or_throw(parse_json(rows.substr(at, end - at), "sentencepiece.jsonl"));
    at = end + 1;
    const Folder folder(models + row.find("model")->string());
    const Tokenizer tokenizer = value_or_throw(Tokenizer::load(folder.path()));
    for (const Json& one : row.find("cases")->array()) {
      const auto ids = ids_of(*one.find("ids"));
      SCOPED_TRACE(row.find("model")->string() + ": " + one.dump());
      if (const Json* text = one.find("text")) {
        EXPECT_EQ(tokenizer.encode(text->string(), false), ids);
        EXPECT_EQ(tokenizer.encode(text->string(), true), ids);
      }
      EXPECT_EQ(tokenizer.decode(ids, false), one.find("decoded")->string());
      EXPECT_EQ(streamed_ids(tokenizer, ids), one.find("decoded")->string());
    }
  }
  EXPECT_EQ(seen, 6);
}

/// A piece of a SentencePiece model in its wire format: text, score 0, type.
std::string piece(const std::string& text, char type) {
  const std::string body = std::string("\x0A") + static_cast<char>(text.size()) + text +
                           std::string("\x15\0\0\0\0\x18", 6) + type;
  return std::string("\x0A") + static_cast<char>(body.size()) + body;
}

// InternLM's tokenizer.model has a piece of a single NUL. Ids and texts are those of sentencepiece
// 0.2.3, but for the part that is not UTF-8, which Python cannot decode.
TEST(SentencePiece, TakesPiecesOfANulAndOfOtherBytesAsTheLibraryDoes) {
  const std::string model = value_or_throw(read_file(data + "/models/stories260k/tok512.model"));
  const std::string text("Once\0 upon 中 x", 16), nul("\0", 1);
  for (const char type : {'\1', '\4', '\5'}) {
    const Folder folder("");
    folder.write("tokenizer.model", model + piece(nul, type));
    const Tokenizer tokenizer = value_or_throw(Tokenizer::load(folder.path()));
    EXPECT_EQ(tokenizer.encode(text, false),
              (std::vector<TokenId>{403, 3, 407, 410, 231, 187, 176, 410, 444}));
    EXPECT_EQ(tokenizer.id_to_token(512), nul);
    EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{403, 512, 407}, false), "Once" + nul + " upon");
  }
  for (const char type : {'\1', '\5'}) {
    const Folder folder("");
    folder.write("tokenizer.model", model + piece("\xE4\xB8", type));
    const Tokenizer tokenizer = value_or_throw(Tokenizer::load(folder.path()));
    EXPECT_EQ(tokenizer.encode(text, false),
              (std::vector<TokenId>{403, 3, 407, 410, 231, 187, 176, 410, 444}));
    EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{403, 512, 407}, false),
              "Once\xEF\xBF\xBD upon");
  }
  const Folder folder("");
  folder.write("tokenizer.model", model + piece("", 1));
  const auto empty = Tokenizer::load(folder.path());
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().what.find("has an empty piece, of id 512"), std::string::npos);
}

TEST(SentencePiece, EncodesAStoryModelAsItsTokenizerJson) {
  const Tokenizer model =
      value_or_throw(Tokenizer::load(data + "/models/stories260k/tok512.model"));
  const Tokenizer file =
      value_or_throw(Tokenizer::load(data + "/models/stories260k/hf/tokenizer.json"));
  const Json texts = value_or_throw(read_json(data + "/expected/encodings/texts.json"));
  int compared = 0;
  for (const Json& text : texts.array()) {
    if (text.string().find('<') != std::string::npos)
      continue;  // the file finds special tokens in text, the model does not
    EXPECT_EQ(model.encode(text.string(), false), file.encode(text.string(), false))
        << text.string();
    ++compared;
  }
  EXPECT_GT(compared, 40);
}

TEST(SentencePiece, TakesSpecialTokensFromTheConfiguration) {
  const Folder folder(models + "llama-like.model");
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>",
    "added_tokens_decoder": {"1": {"content": "<s>", "special": true}, "2": {"content": "</s>", "special": true},
                             "420": {"content": "<|im_end|>", "special": true}}})");
  const Tokenizer tokenizer = value_or_throw(Tokenizer::load(folder.path()));
  const auto once = tokenizer.encode("Once", false);
  auto expected = once;
  expected.insert(expected.begin(), 1);
  EXPECT_EQ(tokenizer.encode("Once", true),
            expected);  // Llama's class adds <s> by default
  EXPECT_EQ(tokenizer.encode("<s>Once", false), expected);
  expected.push_back(420);
  EXPECT_EQ(tokenizer.encode("<s>Once<|im_end|>", false), expected);
  EXPECT_EQ(tokenizer.vocab_size(), 421u);
  EXPECT_EQ(tokenizer.decode(expected, true), "Once");
  EXPECT_EQ(tokenizer.eos_id(), 2);
}

TEST(SentencePiece, PutsTheFirstSpaceWhereTheConfigurationSays) {
  const Folder folder(models + "llama-like.model");
  const auto ids = [&](const char* legacy, const char* text) {
    folder.write(
        "tokenizer_config.json",
        std::string(R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>")") + legacy + "}");
    return value_or_throw(Tokenizer::load(folder.path())).encode(text, false);
  };
  const auto behind = [](std::vector<TokenId> rest) {
    rest.insert(rest.begin(), 1);
    return rest;
  };
  EXPECT_EQ(ids("", "<s>Once"), behind(ids("", "Once")));
  EXPECT_EQ(ids(R"(, "legacy": true)", "<s>Once"), behind(ids("", "Once")));
  EXPECT_EQ(ids(R"(, "legacy": false)", "Once"), ids("", "Once"));
  EXPECT_NE(ids(R"(, "legacy": false)", "<s>Once"), behind(ids("", "Once")));
  EXPECT_EQ(ids(R"(, "legacy": false)", "<s> Once"), behind(ids("", "Once")));
}

TEST(SentencePiece, RefusesClassesItDoesNotKnow) {
  const Folder folder(models + "unigram.model");
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "XLNetTokenizer"})");
  const auto loaded = Tokenizer::load(folder.path());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Errc::unsupported);
  EXPECT_NE(loaded.error().what.find("XLNetTokenizer"), std::string::npos) << loaded.error().what;
}

TEST(SentencePiece, RefusesFilesThatAreCutOrChanged) {
  const std::string whole = value_or_throw(read_file(models + "unigram.model"));
  ASSERT_TRUE(read_sentence_piece_file(whole, "m"));
  EXPECT_FALSE(read_sentence_piece_file("", "m"));
  EXPECT_FALSE(read_sentence_piece_file("aGVsbG8= 0\n", "m"));  // a tiktoken file has the same name
  int refused = 0;
  for (std::size_t size = 0; size < whole.size(); size += 37)
    refused += !read_sentence_piece_file(whole.substr(0, size), "m");
  EXPECT_GT(refused, 50);
  for (std::size_t at = 0; at < whole.size();
       at += 17) {  // whatever is let through must be safe to use
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x51);
    const Folder folder("");
    folder.write("tokenizer.model", changed);
    const auto loaded = Tokenizer::load(folder.path());
    if (!loaded) continue;
    EXPECT_LT(loaded->encode("Once upon a ｶﾞ time™ ﬁ <sep>", false).size(), 200u);
  }
}

}  // namespace
}  // namespace troupe::engine::tokenizer

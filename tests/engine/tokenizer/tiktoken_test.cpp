// Tokenizers of the own classes of Qwen, GLM-4 and ChatGLM3. The vocabulary of Qwen2.5 is that of
// Qwen's first generation: written as qwen.tiktoken, it must encode as the reference library does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "engine/base/text/text.h"
#include "engine/tokenizer/base/byte_alphabet.h"
#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OwnFolder {
 public:
  OwnFolder() : path_(testing::TempDir() + "/troupe_tiktoken_" + std::to_string(::getpid())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~OwnFolder() { fs::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }
  Result<Tokenizer> load() const { return Tokenizer::load(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string base64(const std::string& bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j)
      out.push_back(j > count ? '=' : digits[bits >> (18 - 6 * j) & 63]);
  }
  return out;
}

std::string line_of(const std::string& bytes, std::size_t rank) {
  return cat(base64(bytes), " ", rank, "\n");
}

/// The vocabulary of Qwen2.5 as a tiktoken file.
const std::string& qwen_file() {
  static const std::string file = [] {
    const Json json = value_or_throw(read_json(data + "/tokenizers/qwen2.5/tokenizer.json"));
    std::vector<std::string> tokens;
    for (const auto& [piece, id] : json.find("model")->find("vocab")->object()) {
      tokens.resize(std::max(tokens.size(), static_cast<std::size_t>(id.integer()) + 1));
      append_bytes_of(tokens[static_cast<std::size_t>(id.integer())], piece);
    }
    std::string out;
    for (std::size_t rank = 0; rank < tokens.size(); ++rank) out += line_of(tokens[rank], rank);
    return out;
  }();
  return file;
}

std::string bytes_file() {
  std::string out;
  for (std::size_t byte = 0; byte < 256; ++byte)
    out += line_of(std::string(1, static_cast<char>(byte)), byte);
  return out;
}

TEST(Tiktoken, QwenEncodesAsTheReferenceLibraryDoes) {
  const OwnFolder folder;
  folder.write("qwen.tiktoken", qwen_file());
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"QWenTokenizer"})");
  const Tokenizer tokenizer = value_or_throw(folder.load());
  const Json texts = value_or_throw(read_json(data + "/expected/encodings/texts.json"));
  const Json expected = value_or_throw(read_json(data + "/expected/encodings/qwen2.5.json"));
  for (std::size_t i = 0; i < texts.array().size(); ++i) {
    const std::string& text = texts.array()[i].string();
    if (text.find("<tool_call>") != text.npos) continue;  // a token of Qwen2.5 only
    SCOPED_TRACE(text.substr(0, 200));
    const auto ids = ids_of(expected.find("ids")->array()[i]);
    EXPECT_EQ(tokenizer.encode(text, true), ids);
    EXPECT_EQ(tokenizer.decode(ids, true),
              expected.find("decoded_skip_special")->array()[i].string());
  }
  EXPECT_EQ(tokenizer.token_to_id("<|im_end|>"), 151645);
  EXPECT_EQ(tokenizer.token_to_id("<|extra_204|>"), 151850);
  EXPECT_EQ(tokenizer.eos_id(), 151643);
  EXPECT_EQ(tokenizer.vocab_size(), 151851U);
}

TEST(Tiktoken, MergesEveryPairThatMakesATokenByItsRank) {
  const OwnFolder folder;
  // "abc" can be made of a and bc only, then of ab and c: ab comes first in "abc" by its rank.
  folder.write("qwen.tiktoken", bytes_file() + line_of("ab", 256) + line_of("bc", 257) +
                                    line_of("abc", 258) + line_of("xyz", 259));
  const Tokenizer tokenizer = value_or_throw(folder.load());
  EXPECT_EQ(tokenizer.encode("abcbc", false), (std::vector<TokenId>{258, 257}));
  EXPECT_EQ(tokenizer.encode("xyz", false), (std::vector<TokenId>{259})) << "a whole word";
  EXPECT_EQ(tokenizer.encode("xyzz", false), (std::vector<TokenId>{'x', 'y', 'z', 'z'}));
}

TEST(Tiktoken, Glm4StartsWithItsPrefix) {
  const OwnFolder folder;
  folder.write("tokenizer.model", bytes_file() + line_of("12", 256) + line_of("123", 257) +
                                      line_of("45", 258) + line_of("345", 259));
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"ChatGLM4Tokenizer",
    "added_tokens_decoder":{"260":{"content":"<|endoftext|>","special":true},
      "262":{"content":"[gMASK]","special":true},"264":{"content":"<sop>","special":true},
      "267":{"content":"<|user|>","special":true}},"eos_token":"<|endoftext|>"})");
  const Tokenizer tokenizer = value_or_throw(folder.load());
  const std::vector<TokenId> plain = {'a', 257, 258}, whole = {262, 264, 'a', 257, 258};
  EXPECT_EQ(tokenizer.encode("a12345", false), plain) << "words of up to three digits";
  EXPECT_EQ(tokenizer.encode("a12345", true), whole);
  EXPECT_EQ(tokenizer.encode("<|user|>", false), (std::vector<TokenId>{267}));
  EXPECT_EQ(tokenizer.decode(whole, true), "a12345");
  EXPECT_EQ(tokenizer.eos_id(), 260);
}

TEST(Tiktoken, DamagedFilesAreRefusedWithTheLine) {
  const auto problem = [](const std::string& file) {
    const OwnFolder folder;
    folder.write("qwen.tiktoken", file);
    const auto read = folder.load();
    return read ? "accepted" : read.error().what;
  };
  EXPECT_THAT(problem("YQ== 0\nYg== 2\n"), HasSubstr("qwen.tiktoken:2: expected a token"));
  EXPECT_THAT(problem("Y!== 0\n"), HasSubstr(":1: expected"));
  EXPECT_THAT(problem("YQ==\n"), HasSubstr(":1: expected"));
  EXPECT_THAT(problem("YQ== 0\nYQ== 1\n"), HasSubstr(":2: the token stands twice"));
  EXPECT_THAT(problem("YQ== 0\n"), HasSubstr("no token for the byte 0"));
  const OwnFolder folder;
  folder.write("tokenizer.model", bytes_file());
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"ChatGLM4Tokenizer"})");
  EXPECT_THAT(folder.load().error().what, HasSubstr("[gMASK]"));
}

TEST(ChatGlm3, SpecialTokensFollowTheVocabulary) {
  const OwnFolder folder;
  fs::copy_file(data + "/tokenizers/sentencepiece/llama-like.model",
                folder.path() + "/tokenizer.model");
  const Tokenizer plain = value_or_throw(folder.load());
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"ChatGLMTokenizer"})");
  const Tokenizer tokenizer = value_or_throw(folder.load());
  const auto first = static_cast<TokenId>(plain.vocab_size());
  EXPECT_EQ(tokenizer.token_to_id("[gMASK]"), first + 1);
  EXPECT_EQ(tokenizer.token_to_id("<|observation|>"), first + 8);
  const std::string text = "the sop is an ordinary word";
  auto wanted = plain.encode(text, false);
  EXPECT_EQ(tokenizer.encode(text, false), wanted);
  wanted.insert(wanted.begin(), {first + 1, first + 3});
  EXPECT_EQ(tokenizer.encode(text, true), wanted);
  EXPECT_EQ(tokenizer.decode(wanted, true), text);
}

}  // namespace
}  // namespace troupe::engine::tokenizer

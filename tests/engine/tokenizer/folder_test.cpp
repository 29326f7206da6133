// Folders of a tokenizer: what stands beside tokenizer.json, and slow tokenizers' files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/base/json/json.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;

class TokenizerFolder : public testing::Test {
 protected:
  TokenizerFolder() : path_(testing::TempDir() + "/troupe_folder_" + std::to_string(::getpid())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~TokenizerFolder() override { fs::remove_all(path_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }
  Tokenizer load() const { return value_or_throw(Tokenizer::load(path_)); }
  void expect_refused(Errc code, const std::string& part) const {
    const auto loaded = Tokenizer::load(path_);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(to_string(loaded.error().code), std::string(to_string(code)));
    EXPECT_NE(loaded.error().what.find(part), std::string::npos) << loaded.error().what;
  }

  const std::string path_;
};

constexpr const char* tiny =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<s>": 2, "</s>": 3, "ab": 4}, "merges": ["a b"]},
  "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "</s>"}}, {"Sequence": {"id": "A"}}],
                     "special_tokens": {"</s>": {"id": "</s>", "ids": [3], "tokens": ["</s>"]}}}})";

TEST_F(TokenizerFolder, IsNamedWhenItHasNothing) {
  expect_refused(Errc::not_found, "tokenizer.model");
  EXPECT_FALSE(Tokenizer::is_in(path_));
}

TEST_F(TokenizerFolder, AddsStartAndEndAsTheConfigurationSays) {
  write("tokenizer.json", tiny);
  EXPECT_TRUE(Tokenizer::is_in(path_));
  EXPECT_EQ(load().encode("a", true), (Ids{3, 0}));  // as the file says
  const std::string names = R"("bos_token": "<s>", "eos_token": {"content": "</s>"})";
  const auto with = [&](const std::string& flags) {
    write("tokenizer_config.json", "{" + names + flags + "}");
    return load().encode("a", true);
  };
  EXPECT_EQ(with(""), (Ids{3, 0}));
  EXPECT_EQ(with(R"(, "add_bos_token": null)"), (Ids{3, 0}));
  EXPECT_EQ(with(R"(, "add_bos_token": false)"), (Ids{0}));
  EXPECT_EQ(with(R"(, "add_bos_token": true)"), (Ids{2, 0}));
  EXPECT_EQ(with(R"(, "add_bos_token": true, "add_eos_token": true)"), (Ids{2, 0, 3}));
  EXPECT_EQ(with(R"(, "add_eos_token": true)"), (Ids{0, 3}));
  write("tokenizer_config.json", R"({"add_bos_token": true})");
  EXPECT_EQ(load().encode("a", true), (Ids{0}));  // no token has the role
  write("tokenizer_config.json", R"({"add_bos_token": true, "bos_token": "<none>"})");
  expect_refused(Errc::bad_input, "<none>");
}

TEST_F(TokenizerFolder, SettingsThatAreNotKnownAreRefusedByName) {
  std::string file = tiny;
  write("tokenizer.json", file.replace(1, 0, "\"future\": 1, "));
  expect_refused(Errc::unsupported, "\"future\"");
  file = tiny;
  write("tokenizer.json", file.replace(11, 0, "\"doubling\": true, "));
  expect_refused(Errc::unsupported, "\"doubling\"");
  write("tokenizer.json", tiny);
  write("tokenizer_config.json", R"({"split_special_tokens": true})");
  expect_refused(Errc::unsupported, "split_special_tokens");
  write("tokenizer_config.json", R"({"split_special_tokens": false, "other": 3})");
  EXPECT_EQ(load().encode("a", false), (Ids{0}));
}

TEST_F(TokenizerFolder, FindsTheTokensOfTheConfigurationInText) {
  write("tokenizer.json", tiny);
  EXPECT_EQ(load().encode("<s>ab", false), (Ids{4}));  // pieces that no merge makes
  write("special_tokens_map.json", R"({"bos_token": "<s>", "eos_token": "<not here>"})");
  EXPECT_EQ(load().encode("<s>ab", false), (Ids{2, 4}));
  EXPECT_TRUE(load().is_special(2));
  EXPECT_FALSE(load().eos_id());
  write("tokenizer_config.json",
        R"({"added_tokens_decoder": {"7": {"content": "<x>", "special": true, "lstrip": true}}})");
  EXPECT_EQ(load().encode("ab  <x>", false), (Ids{4, 7}));
  EXPECT_EQ(load().decode(Ids{4, 7}, true), "ab");
  EXPECT_EQ(load().vocab_size(), 8u);
  write("added_tokens.json", R"({"<y>": 8})");
  EXPECT_EQ(load().encode("<y>a", false), (Ids{8, 0}));
}

// The ids are those of AutoTokenizer of transformers 5.24 for the same folder.
TEST_F(TokenizerFolder, KeepsTheIdsOfTokenizerJsonWhereItsConfigurationContradictsThem) {
  fs::copy_file(data + "/tokenizers/minimind/tokenizer.json", path_ + "/tokenizer.json");
  write("tokenizer_config.json", R"({"added_tokens_decoder": {
    "6400": {"content": "<|z|>", "special": true, "normalized": false},
    "1": {"content": "<|new_a|>", "special": true, "normalized": false},
    "2": {"content": "<|endoftext|>", "special": true, "normalized": false},
    "7": {"content": "hello_b", "special": false, "normalized": false}}})");
  testing::internal::CaptureStderr();
  const Tokenizer tokenizer = load();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("added_tokens_decoder\": 4 tokens have another id"), std::string::npos)
      << said;
  EXPECT_NE(said.find("\"<|new_a|>\" has the id 1 there and 6400 here; 1 is \"<|im_start|>\""),
            std::string::npos)
      << said;
  EXPECT_EQ(tokenizer.encode("<|new_a|>a", false), (Ids{6400, 100}));
  EXPECT_EQ(tokenizer.encode("<|endoftext|>a", false), (Ids{0, 100}));
  EXPECT_EQ(tokenizer.encode("hello_ba", false), (Ids{6401, 100}));
  EXPECT_EQ(tokenizer.encode("<|z|>a", false), (Ids{6402, 100}));
  EXPECT_EQ(tokenizer.decode(Ids{1, 2, 7}, false), "<|im_start|><|im_end|><|quad_start|>");
  EXPECT_EQ(tokenizer.vocab_size(), 6403u);
}

TEST_F(TokenizerFolder, RefusesIdsThatAreOutOfRange) {
  write("tokenizer.json", tiny);
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"-9": {"content": "<x>"}}})");
  expect_refused(Errc::bad_input, "-9");
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"nine": {"content": "<x>"}}})");
  expect_refused(Errc::bad_input, "nine");
}

/// vocab.json and merges.txt of a byte-level tokenizer.json.
void write_slow_files(const std::string& from, const std::string& folder) {
  const Json file = value_or_throw(read_json(from));
  const Json* model = file.find("model");
  std::ofstream(folder + "/vocab.json") << model->find("vocab")->dump();
  std::ofstream merges(folder + "/merges.txt");
  merges << "#version: 0.2\n";
  for (const Json& merge : model->find("merges")->array()) {
    if (merge.is_string())
      merges << merge.string() << "\n";
    else
      merges << merge.array()[0].string() << " " << merge.array()[1].string() << "\n";
  }
}

TEST_F(TokenizerFolder, OfSlowFilesEncodesAsTheTokenizerJson) {
  const Json texts = value_or_throw(read_json(data + "/expected/encodings/texts.json"));
  const auto compare = [&](const std::string& folder) {
    const Tokenizer slow = load(), fast = value_or_throw(Tokenizer::load(folder));
    for (const Json& text : texts.array()) {
      EXPECT_EQ(slow.encode(text.string(), true), fast.encode(text.string(), true))
          << text.string();
      EXPECT_EQ(slow.decode(fast.encode(text.string(), true), true),
                fast.decode(fast.encode(text.string(), true), true));
    }
    EXPECT_EQ(slow.eos_id(), fast.eos_id() ? fast.eos_id() : std::optional<TokenId>(50256));
  };
  write_slow_files(data + "/tokenizers/qwen2.5/tokenizer.json", path_);
  fs::copy_file(data + "/tokenizers/qwen2.5/tokenizer_config.json",
                path_ + "/tokenizer_config.json");
  compare(data + "/tokenizers/qwen2.5");
  fs::remove(path_ + "/tokenizer_config.json");
  write_slow_files(data + "/tokenizers/gpt2/tokenizer.json", path_);
  write("config.json", R"({"model_type": "gpt2"})");
  compare(data + "/tokenizers/gpt2");
}

TEST_F(TokenizerFolder, OfAVocabTxtIsBerts) {
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nwor\n##ld\n##s\n!\n");
  write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer", "do_lower_case": true})");
  const Tokenizer tokenizer = load();
  EXPECT_EQ(tokenizer.encode("Héllo  worlds! [MASK] x", true), (Ids{2, 5, 6, 7, 8, 9, 4, 1, 3}));
  EXPECT_EQ(tokenizer.decode(Ids{2, 5, 6, 7, 8, 9, 3}, true), "hello worlds!");
  write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false})");
  EXPECT_EQ(load().encode("Hello hello", false), (Ids{1, 5}));
}

TEST_F(TokenizerFolder, RefusesSlowFilesOfClassesItDoesNotKnow) {
  write("vocab.txt", "[UNK]\n");
  expect_refused(Errc::unsupported, "BertTokenizer");
  write("vocab.json", "{}");
  write("merges.txt", "");
  write("tokenizer_config.json", R"({"tokenizer_class": "XLMTokenizer"})");
  expect_refused(Errc::unsupported, "XLMTokenizer");
  write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  write("merges.txt", "a\n");
  expect_refused(Errc::bad_input, "merges.txt:1");
}

}  // namespace
}  // namespace troupe::engine::tokenizer

// Tokenizers of the class LlamaTokenizer as transformers 5 builds them: the ids that transformers
// 5.24 recorded (tests/data/expected/transformers5.jsonl).
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

namespace fs = std::filesystem;

class Transformers5 : public testing::Test {
 protected:
  Transformers5()
      : path_(testing::TempDir() + "/troupe_transformers5_" + std::to_string(::getpid())) {
    clear();
  }
  ~Transformers5() override { fs::remove_all(path_); }

  void clear() const {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }

  /// A copy of the tokenizer of a folder with `changes` to its tokenizer_config.json; a null value
  /// leaves the member out.
  void copy(const std::string& folder, const Json& changes) const {
    clear();
    fs::copy_file(folder + "/tokenizer.json", path_ + "/tokenizer.json");
    const Json given = value_or_throw(read_json(folder + "/tokenizer_config.json"));
    Json config = Json::Object{};
    for (const auto& [key, value] : given.object())
      if (!changes.find(key)) config.set(key, value);
    for (const auto& [key, value] : changes.object())
      if (!value.is_null()) config.set(key, value);
    write("tokenizer_config.json", config.dump());
  }

  const std::string path_;
};

/// The recorded texts whose ids the tokenizer gives, out of how many.
std::pair<std::size_t, std::size_t> equal_cases(const Tokenizer& tokenizer, const Json& line) {
  std::size_t equal = 0;
  const auto& cases = line.find("cases")->array();
  for (const Json& each : cases) {
    const auto ids = tokenizer.encode(each.find("text")->string(), true);
    equal += ids == ids_of(*each.find("ids")) &&
             tokenizer.decode(ids, false) == each.find("decoded")->string();
  }
  return {equal, cases.size()};
}

TEST_F(Transformers5, GivesTheRecordedIdsAndATokenizerFileThatGivesThem) {
  std::ifstream file(data + "/expected/transformers5.jsonl");
  std::size_t lines = 0, changed = 0;
  for (std::string line; std::getline(file, line);) {
    const Json recorded = value_or_throw(parse_json(line, "transformers5.jsonl"));
    copy(data + "/" + recorded.find("folder")->string(), *recorded.find("config"));
    const auto own = Tokenizer::load(path_, TokenizerIds::transformers5);
    const auto [equal, all] = equal_cases(value_or_throw(own), recorded);
    EXPECT_EQ(equal, all) << recorded.find("config")->dump();
    const std::string rebuilt = value_or_throw(rebuilt_tokenizer_file(path_));
    const auto [as_written, some] = equal_cases(value_or_throw(Tokenizer::load(path_)), recorded);
    EXPECT_EQ(as_written == some, rebuilt.empty()) << recorded.find("config")->dump();
    if (!rebuilt.empty()) {
      write("tokenizer.json", rebuilt);
      EXPECT_EQ(equal_cases(value_or_throw(Tokenizer::load(path_)), recorded).first, all);
      EXPECT_EQ(value_or_throw(rebuilt_tokenizer_file(path_)), "") << "is rebuilt once";
      ++changed;
    }
    ++lines;
  }
  EXPECT_EQ(lines, 11u);
  EXPECT_EQ(changed, 10u);  // all but that of the class PreTrainedTokenizerFast
}

TEST_F(Transformers5, OtherFoldersKeepTheIdsOfTheirFile) {
  const Json file = value_or_throw(read_json(data + "/models/stories260k/hf/tokenizer.json"));
  const Json of_class = Json::Object{{"tokenizer_class", "LlamaTokenizerFast"}};
  const auto model = [](const char* type) { return Json(Json::Object{{"model_type", type}}); };
  EXPECT_TRUE(is_llama_tokenizer(file, of_class, model("llama")));
  EXPECT_TRUE(is_llama_tokenizer(file, of_class, Json()));
  EXPECT_TRUE(is_llama_tokenizer(file, Json(), of_class));
  EXPECT_FALSE(is_llama_tokenizer(file, of_class, model("mistral")));
  EXPECT_FALSE(is_llama_tokenizer(file, of_class, model("phi3")));
  EXPECT_FALSE(is_llama_tokenizer(file, Json(), model("llama")));
  EXPECT_FALSE(is_llama_tokenizer(
      file, Json(of_class).set("auto_map", Json::Object{{"AutoTokenizer", Json::Array{}}}),
      model("llama")));
  const Json bytes = value_or_throw(read_json(data + "/tokenizers/minimind/tokenizer.json"));
  EXPECT_FALSE(is_llama_tokenizer(bytes, of_class, model("llama")));
}

TEST_F(Transformers5, WhatCannotBeBuiltIsRefusedByName) {
  const auto refused = [&] {
    const auto loaded = Tokenizer::load(path_, TokenizerIds::transformers5);
    return loaded ? std::string("is read") : loaded.error().what;
  };
  const std::string config = R"({"tokenizer_class": "LlamaTokenizer"})";
  write("tokenizer_config.json", config);
  fs::copy_file(data + "/models/stories260k/tok512.model", path_ + "/tokenizer.model");
  EXPECT_NE(refused().find("need a tokenizer.json"), std::string::npos) << refused();
  EXPECT_TRUE(Tokenizer::load(path_));
  clear();
  write("tokenizer_config.json", config);
  write("tokenizer.json",
        R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1]]}})");
  EXPECT_NE(refused().find("Unigram"), std::string::npos) << refused();
  EXPECT_TRUE(Tokenizer::load(path_));
}

}  // namespace
}  // namespace troupe::engine::tokenizer

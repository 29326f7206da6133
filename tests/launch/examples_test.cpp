// The recipes of launch/examples: `troupe explain` accepts them once their model and data are where
// they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

/// A folder with models/ and data/ as the recipes name them: the configuration and the tokenizer of
/// Qwen2.5 and the first rows of the data sets.
std::string downloads() {
  const std::string folder = scratch_folder();
  for (const char* model : {"Qwen2.5-0.5B", "Qwen2.5-0.5B-Instruct"}) {
    const std::string path = cat(folder, "/models/", model);
    fs::create_directories(path);
    fs::copy_file(data("model_configs/qwen2.5-0.5b-instruct.json"), path + "/config.json");
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      fs::copy_file(data("tokenizers/qwen2.5/") + name, cat(path, "/", name));
  }
  const std::string problems = folder + "/data/gsm8k/main",
                    pairs = folder + "/data/ultrafeedback_binarized/data";
  fs::create_directories(problems);
  fs::create_directories(pairs);
  for (const std::string part : {"train", "test"}) {
    fs::copy_file(data(cat("datasets/math/gsm8k_", part, "_head.jsonl")),
                  cat(problems, "/", part, "-00000-of-00001.jsonl"));
    fs::copy_file(data("datasets/pairwise/hh_rlhf_harmless_base_test_head.jsonl"),
                  cat(pairs, "/", part, "-00000-of-00001.jsonl"));
  }
  for (const char* ending : {".bin", ".idx"})
    fs::copy_file(data("golden/megatron/a_text_document") + ending,
                  cat(folder, "/data/wiki_text_document", ending));
  return folder;
}

TEST(Examples, AreAcceptedUnchanged) {
  const std::string folder = downloads();
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(TROUPE_DOCS "/../launch/examples")) {
    const std::string file = fs::canonical(entry.path()).string();
    if (!file.ends_with(".yaml")) continue;
    ++seen;
    const int status = std::system(
        cat("cd '", folder, "' && '" TROUPE_PROGRAM "' explain --config '", file, "' >out 2>&1")
            .c_str());
    const std::string out = value_or_throw(read_file(folder + "/out"));
    EXPECT_EQ(status, 0) << file << "\n" << out;
    EXPECT_EQ(out.find("Warnings"), std::string::npos) << file << "\n" << out;
    EXPECT_NE(out.find("Qwen2ForCausalLM, 494,032,768 parameters"), std::string::npos) << out;
    EXPECT_FALSE(fs::exists(folder + "/runs"));
  }
  EXPECT_EQ(seen, 4);
}

}  // namespace
}  // namespace troupe::launch

// Runs whose models do not fit into a limit end with exit code 10 before anything is loaded; runs
// of which only the rest may not fit begin with a warning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/launch/program.h"
#include "tests/support/sanitized.h"

namespace troupe::launch::memory_refusal_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class MemoryRefusal : public testing::Test {
 protected:
  void SetUp() override {
    if (test::sanitized) GTEST_SKIP() << "a sanitizer needs terabytes of address space";
    std::filesystem::create_directory(model_);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy_file(cat(data("models/stories260k/hf"), '/', name),
                                 cat(model_, '/', name));
    // 437 million parameters, 6.5 GiB in training; there are no weights that could be loaded.
    write(model_ + "/config.json",
          R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024,
              "intermediate_size": 4096, "num_hidden_layers": 26, "num_attention_heads": 16,
              "num_key_value_heads": 16, "vocab_size": 512, "max_position_embeddings": 512,
              "rms_norm_eps": 1e-05, "tie_word_embeddings": true, "hidden_act": "silu"})");
    std::string rows;
    for (int i = 0; i < 8; ++i) rows += "{\"text\":\"once upon a time\"}\n";
    write(folder_ + "/rows.jsonl", rows);
  }
  static void write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(write_file_durably(path, text));
  }
  /// Below a limit of the address space in KiB.
  ProgramOutput run(const char* kibibytes, const std::string& arguments) const {
    const std::string command =
        cat("bash -c \"ulimit -v ", kibibytes, "; exec '" TROUPE_PROGRAM "' ", arguments, "\" >",
            folder_, "/out 2>", folder_, "/err");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ + "/out").value_or(""),
            read_file(folder_ + "/err").value_or("")};
  }
  std::string arguments(const std::string& model, const std::string& more = "") const {
    return cat("--algorithm pretrain --set model=", model, " --set data.path=", folder_,
               "/rows.jsonl --set output=", folder_,
               "/run --set train.batch_size=4 --set train.steps=1 --set train.threads=1 ", more);
  }

  std::string folder_ = scratch_folder(), model_ = folder_ + "/model";
};

constexpr const char* four_gib = "4194304";

TEST_F(MemoryRefusal, NamesTheLimitAndWhatFits) {
  const ProgramOutput train = run(four_gib, "train " + arguments(model_));
  EXPECT_EQ(train.code, 10) << train.err;
  EXPECT_THAT(train.err, AllOf(HasSubstr("weights, gradients and optimizer state need 6.5 GiB"),
                               HasSubstr("the limit of the address space (ulimit -v)"),
                               HasSubstr("What would fit: "), HasSubstr("moments = bf16 (3.3 GiB)"),
                               HasSubstr("parallel.tp = 2 over 2 hosts (3.3 GiB on each)"),
                               HasSubstr("parallel.pp = 2 over 2 hosts")));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run")) << "nothing was begun";
  const ProgramOutput explain = run(four_gib, "explain " + arguments(model_));
  EXPECT_EQ(explain.code, 10);
  EXPECT_THAT(explain.out, ContainsRegex("moments +3.3 GiB"));
  EXPECT_THAT(explain.err, HasSubstr("What would fit: "));
  const ProgramOutput dry = run(four_gib, "train --dry-run " + arguments(model_));
  EXPECT_EQ(dry.code, 10);
}

TEST_F(MemoryRefusal, IsGoneWithASettingThatItNames) {
  const ProgramOutput explain = run(
      four_gib, "explain " + arguments(model_,
                                       "--set train.weights=bf16 --set train.gradients=bf16 --set "
                                       "train.moments=bf16"));
  EXPECT_EQ(explain.code, 0) << explain.err;
}

TEST_F(MemoryRefusal, OfAClusterCountsItsGroups) {
  write(folder_ + "/cluster.yaml", "groups: [{role: policy}]\n");
  const ProgramOutput launch = run(
      four_gib, cat("launch --cluster ", folder_, "/cluster.yaml -- train ", arguments(model_)));
  EXPECT_EQ(launch.code, 10) << launch.err;
  EXPECT_THAT(launch.err, HasSubstr("This is a process of policy"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run"));
}

// The micro-batch is never filled, so the run ends well.
TEST_F(MemoryRefusal, IsAWarningWhereOnlyActivationsMayNotFit) {
  const std::string small =
      arguments(data("models/stories260k/hf"), "--set train.micro_batch_tokens=1000000");
  const ProgramOutput train = run(four_gib, "train " + small);
  EXPECT_EQ(train.code, 0) << train.err;
  EXPECT_THAT(train.err, AllOf(HasSubstr("with activations and caches the run may need"),
                               HasSubstr("lower train.micro_batch_tokens (1000000)")));
  const ProgramOutput explain = run(four_gib, "explain " + small);
  EXPECT_EQ(explain.code, 0);
  EXPECT_THAT(explain.out, HasSubstr("Warning: memory: with activations and caches"));
  const ProgramOutput enough = run(four_gib, "explain " + arguments(data("models/stories260k/hf")));
  EXPECT_THAT(enough.out, Not(HasSubstr("Warning: memory")));
}

}  // namespace
}  // namespace troupe::launch::memory_refusal_test

// The scripts of launch/examples with Megatron's command lines from beginning to end, with tiny
// models.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

class MegatronWalkThrough : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  }

  /// A random model of 512 tokens and its tokenizer.
  void put_model(const std::string& architecture) const {
    fs::create_directories(model_);
    Json config = small_config(architecture);
    config.set("vocab_size", 512).set("rope_theta", 1000000.0).set("max_position_embeddings", 256);
    put_small_model(model_, config);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      fs::copy_file(data(cat("models/stories260k/hf/", name)), cat(model_, '/', name));
  }

  void run(const std::string& script, int ranks, const std::string& rows) const {
    const std::string environment =
        cat("MODEL=", model_, " WORK=", root_,
            "/flow PROGRAMS=", fs::path(TROUPE_PROGRAM).parent_path().string(),
            "/megatron MPIRUN='mpirun --allow-run-as-root --oversubscribe -n ", ranks,
            "' SEQ_LENGTH=128 TRAIN_ITERS=2 GBS=4 HEAD_SIZE=4 LAYERS=5 HIDDEN=32 INNER=24 HEADS=8 "
            "VOCABULARY=512 KV_HEADS=4 ",
            rows);
    const int status = std::system(cat(environment, " bash " TROUPE_DOCS "/../launch/examples/",
                                       script, " </dev/null >", root_, "/out 2>&1")
                                       .c_str());
    ASSERT_EQ(status, 0) << content(root_ + "/out");
    EXPECT_THAT(content(root_ + "/flow/pretrain.log"),
                testing::HasSubstr("iteration        2/       2"));
  }

  bool has_rank(const std::string& run, const std::string& rank) const {
    return fs::exists(
        cat(root_, "/flow/", run, "/iter_0000002/mp_rank_", rank, "/model_optim_rng.pt"));
  }

  static std::string logprobs(const std::string& folder) {
    const ProgramOutput said =
        run_program(cat("logprobs --model ", folder), "{\"ids\": [1, 5, 9, 200, 511, 3]}\n");
    EXPECT_EQ(said.code, 0) << said.err;
    return said.out;
  }

  /// The last conversion changes no bit of what the model says, and training did.
  void same_in_hf(const std::string& run) const {
    const std::string trained = logprobs(cat(root_, "/flow/", run, "/latest"));
    EXPECT_EQ(trained, logprobs(model_ + "/mg2hf"));
    EXPECT_NE(trained, logprobs(model_));
  }

  const std::string root_ = scratch_folder(), model_ = root_ + "/model";
};

TEST_F(MegatronWalkThrough, OfQwen3RunsFromTokensToAHuggingFaceFolder) {
  put_model("Qwen3ForCausalLM");
  run("megatron_qwen3.sh", 2,
      cat("PROMPT_TYPE=empty DATA=", data("datasets/pretrain/c4_demo_head.jsonl"),
          " ROWS=", data("datasets/alpaca/identity_head.json")));
  EXPECT_TRUE(has_rank("tuned", "00_000"));
  EXPECT_TRUE(has_rank("tuned", "00_001"));
  same_in_hf("tuned");
}

TEST_F(MegatronWalkThrough, OfQwen2TrainsOnTwoColumnsAndFourRanks) {
  put_model("Qwen2ForCausalLM");
  run("megatron_qwen2.5.sh", 4, cat("DATA=", data("datasets/alpaca/identity_head.json")));
  for (const char* rank : {"00_000", "00_001", "01_000", "01_001"})
    EXPECT_TRUE(has_rank("pretrained", rank)) << rank;
  same_in_hf("pretrained");
}

}  // namespace
}  // namespace troupe::launch

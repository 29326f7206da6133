// launch/examples/megatron_qwen3.sh from beginning to end, with a tiny model.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

/// A folder with a random Qwen3 of 512 tokens and its tokenizer.
std::string tiny_qwen3(const std::string& folder) {
  fs::create_directories(folder);
  Json config = small_config("Qwen3ForCausalLM");
  config.set("vocab_size", 512).set("rope_theta", 1000000.0).set("max_position_embeddings", 256);
  put_small_model(folder, config);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(data(cat("models/stories260k/hf/", name)), cat(folder, '/', name));
  return folder;
}

TEST(MegatronWalkThrough, RunsFromTokensToAHuggingFaceFolder) {
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  const std::string root = scratch_folder(), model = tiny_qwen3(root + "/qwen3");
  const std::string environment =
      cat("MODEL=", model, " DATA=", data("datasets/pretrain/c4_demo_head.jsonl"),
          " ROWS=", data("datasets/alpaca/identity_head.json"), " WORK=", root,
          "/flow PROGRAMS=", fs::path(TROUPE_PROGRAM).parent_path().string(),
          "/megatron MPIRUN='mpirun --allow-run-as-root --oversubscribe -n 2' PROMPT_TYPE=empty "
          "SEQ_LENGTH=128 TRAIN_ITERS=2 GBS=4 HEAD_SIZE=4 LAYERS=5 HIDDEN=32 INNER=24 HEADS=8 "
          "VOCABULARY=512 KV_HEADS=4 ");
  const int status = std::system(
      cat(environment, "bash " TROUPE_DOCS "/../launch/examples/megatron_qwen3.sh </dev/null >",
          root, "/out 2>&1")
          .c_str());
  ASSERT_EQ(status, 0) << content(root + "/out");
  const std::string log = content(root + "/flow/pretrain.log");
  EXPECT_THAT(log, testing::HasSubstr("iteration        2/       2"));
  for (const char* rank : {"mp_rank_00_000", "mp_rank_00_001"})
    EXPECT_TRUE(fs::exists(cat(root, "/flow/tuned/iter_0000002/", rank, "/model_optim_rng.pt")))
        << rank;
  const std::string input = "{\"ids\": [1, 5, 9, 200, 511, 3]}\n";
  const Said before = run_program(cat("logprobs --model ", root, "/flow/tuned/latest"), input);
  const Said after = run_program(cat("logprobs --model ", model, "/mg2hf"), input);
  ASSERT_EQ(before.code, 0) << before.err;
  EXPECT_EQ(before.out, after.out) << after.err;
  EXPECT_NE(before.out, run_program(cat("logprobs --model ", model), input).out);
}

}  // namespace
}  // namespace troupe::launch

// --load X --save X, with which Megatron's users resume a run.
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "launch/tools/convert/convert.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

struct Start {
  const char* name;
  const char* program;
  const char* flags;    ///< of every command
  const char* load;     ///< of the first: "hf", "mg", or "" for random weights
  const char* weights;  ///< in the folder of the last checkpoint
};

class ResumedByLoad : public testing::TestWithParam<Start> {
 protected:
  ResumedByLoad() {
    std::string rows;
    for (int row = 0; row < 12; ++row)
      rows += cat("{\"instruction\": \"how are you?\", \"output\": \"I have ", row, " cats.\"}\n");
    value_or_throw(write_file_durably(root_ + "/rows.jsonl", rows));
    value_or_throw(write_file_durably(root_ + "/text.txt", std::string(2000, 'a')));
    if (std::string_view(GetParam().load) != "mg") return;
    tools::convert::ConvertOptions options;
    options.load_dir = model_;
    options.save_dir = root_ + "/mg";
    options.use_mcore = true;
    options.layers.pipeline = 2;
    value_or_throw(tools::convert::convert(options));
  }

  /// The hash of the weights after the run.
  std::string train(const std::string& load, const std::string& save, int iterations) const {
    const ProgramOutput said = run_program(
        cat(GetParam().program, ' ', GetParam().flags, load.empty() ? "" : " --load ", load,
            " --save ", root_, '/', save, " --tokenizer-name-or-path ", model_,
            " --seq-length 64 --micro-batch-size 1 --global-batch-size 4 --lr 0.01 "
            "--lr-decay-style constant --norm-epsilon 1e-5 --save-interval 2 --data-path ",
            root_, data_of(), " --train-iters ", iterations));
    EXPECT_EQ(said.code, 0) << said.err;
    return value_or_throw(read_file(cat(root_, '/', save, "/latest/", GetParam().weights)));
  }
  std::string data_of() const {
    return std::string_view(GetParam().program) == "pretrain_gpt" ? "/text.txt" : "/rows.jsonl";
  }

  const std::string root_ = scratch_folder(), model_ = data("models/stories260k/hf");
};

TEST_P(ResumedByLoad, HasTheBitsOfAnUndisturbedRun) {
  const std::string_view load = GetParam().load;
  const std::string first = load == "hf" ? model_ : load == "mg" ? root_ + "/mg" : "";
  train(first, "halved", 2);
  const std::string resumed = train(root_ + "/halved", "halved", 4);
  EXPECT_TRUE(resumed == train(first, "whole", 4));
  EXPECT_TRUE(fs::exists(root_ + "/halved/iter_0000002"));
  EXPECT_TRUE(fs::exists(root_ + "/halved/iter_0000004"));
}

constexpr const char* tuning =
    "--stage sft --is-instruction-dataset --finetune --prompt-type empty";
constexpr const char* adapter =
    "--stage sft --is-instruction-dataset --finetune --prompt-type empty --lora-r 4 --lora-alpha 8 "
    "--lora-target-modules linear_qkv linear_fc2";

INSTANTIATE_TEST_SUITE_P(
    Runs, ResumedByLoad,
    testing::Values(Start{"Hub", "posttrain_gpt", tuning, "hf", "model.safetensors"},
                    Start{"Megatron", "posttrain_gpt", tuning, "mg", "model.safetensors"},
                    Start{"Adapter", "posttrain_gpt", adapter, "hf", "adapter_model.safetensors"},
                    Start{"Random", "pretrain_gpt", "", "", "model.safetensors"}),
    [](const auto& start) { return start.param.name; });

}  // namespace
}  // namespace troupe::launch

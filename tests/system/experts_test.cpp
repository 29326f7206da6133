// Whole runs of a mixture of experts: interrupted and resumed runs write the same bytes, choice
// biases and loads of the experts included.
#include <gmock/gmock.h>

#include <filesystem>
#include <numeric>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

class ExpertRuns : public SystemRuns {
 protected:
  // A GLM-4.5 of two layers, the second with eight experts, and the tokenizer of stories260k.
  ExpertRuns() {
    const std::string from = launch::data("models/stories260k/hf/");
    std::filesystem::create_directories(path("model"));
    for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy_file(from + file, path("model/") + file);
    Json config = value_or_throw(read_json(launch::data("parity/glm4_moe/config.json")));
    value_or_throw(
        write_file_durably(path("model/config.json"), config.set("vocab_size", 512).dump()));
  }
  std::string pretraining(const char* output, int steps, const std::string& more = "") const {
    return arguments(
        "pretrain", output,
        cat("--set model='", path("model"),
            "' --set train.schedule=constant --set train.save_every=3 ",
            "--set 'train.experts.losses=[batch, sequence]' ",
            "--set 'train.experts.coefficients=[0.01, 0.001]' ",
            "--set train.experts.bias_rate=0.001 --set train.steps=", steps, ' ', more));
  }
  std::string text_of(const std::string& file) const {
    return value_or_throw(read_file(path(file)));
  }
};

TEST_F(ExpertRuns, EndInTheBytesOfARunThatWasNeverInterrupted) {
  const std::string said = run(pretraining("whole", 6));
  EXPECT_THAT(said, HasSubstr("load-balancing losses: batch (0.01), sequence (0.001)"));
  run(pretraining("halves", 3));
  run(pretraining("halves", 6));
  expect_same_bytes("whole", "halves");
  EXPECT_EQ(text_of("whole/experts.jsonl"), text_of("halves/experts.jsonl"));
  const auto lines = launch::json_lines(text_of("whole/experts.jsonl"));
  ASSERT_EQ(lines.size(), 6U) << "one layer has experts";
  EXPECT_EQ(lines[5].find("layer")->integer(), 1);
  const auto metrics = launch::json_lines(text_of("whole/metrics.jsonl"));
  double choices = 0;
  for (const Json& count : lines[5].find("tokens")->array()) choices += count.number();
  EXPECT_EQ(choices, 2 * metrics[5].find("tokens")->number());
  for (const char* name : {"moe/load_max_over_mean", "moe/load_entropy", "moe/dead_experts",
                           "moe/batch_loss", "moe/sequence_loss"})
    EXPECT_TRUE(metrics[5].find(name)) << name;
}

TEST_F(ExpertRuns, ReplicasAndStagesHaveTheBiasesOfOneRank) {
  const auto biases = [&](const char* output, const char* more) {
    run(pretraining(output, 4, more));
    const auto file = value_or_throw(
        engine::checkpoint::SafetensorsFile::open(path(cat(output, "/latest/model.safetensors"))));
    std::vector<float> values(8);
    value_or_throw(file.read_f32("model.layers.1.mlp.gate.e_score_correction_bias", values));
    return values;
  };
  const auto one = biases("one", "");
  EXPECT_THAT(one, testing::Contains(testing::Ne(one[0])));
  EXPECT_EQ(biases("replicas", "--set parallel.dp=2 --set parallel.zero=1"), one);
  EXPECT_EQ(biases("stages", "--set parallel.pp=2"), one);
}

TEST_F(ExpertRuns, WithRolloutsHaveNoLossUnlessItIsSet) {
  run(pretraining("base", 1));
  const auto grpo = [&](const char* output, const char* more) {
    return arguments("grpo", output,
                     cat("--set model='", path("base/latest"), "' --set train.steps=1 ", more));
  };
  EXPECT_THAT(run(grpo("none", "")), HasSubstr("load-balancing losses: none, coefficient 0"));
  EXPECT_THAT(run(grpo("set", "--set 'train.experts.coefficients=[0.01]'")),
              HasSubstr("load-balancing losses: all_layers (0.01)"));
  EXPECT_THAT(launch::run_program(grpo("dropped", "--set train.experts.capacity=1")).err,
              HasSubstr("train.experts.capacity"));
}

TEST_F(ExpertRuns, AdaptersOfExpertsAreTrainedAndResumed) {
  run(pretraining("base", 1));
  for (const char* form : {"--set 'lora.targets=[gate_proj, up_proj, down_proj]'",
                           "--set 'lora.targets=[]' --set "
                           "'lora.parameters=[mlp.experts.gate_up_proj, mlp.experts.down_proj]'"}) {
    const auto sft = [&](const char* output, int steps) {
      return arguments("sft", output,
                       cat("--set model='", path("base/latest"), "' --set lora.rank=2 ", form,
                           " --set train.max_length=96 --set train.schedule=constant "
                           "--set train.save_every=2 --set train.steps=",
                           steps));
    };
    for (const char* output : {"whole-adapter", "halves-adapter"})
      std::filesystem::remove_all(path(output));
    run(sft("whole-adapter", 4));
    run(sft("halves-adapter", 2));
    run(sft("halves-adapter", 4));
    expect_same_bytes("whole-adapter", "halves-adapter");
  }
}

}  // namespace
}  // namespace troupe::test

// What checkpoints contain: train.save_dtype and train.save_only_model.
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using engine::checkpoint::SafetensorsFile;
using engine::checkpoint::StoredType;
using testing::HasSubstr;

constexpr const char* constant = "--set train.schedule=constant --set train.save_every=0 ";

/// The type of all tensors of a checkpoint's model.
StoredType type_of(const std::string& checkpoint) {
  const auto file = value_or_throw(SafetensorsFile::open(checkpoint + "/model.safetensors"));
  const StoredType type = file.tensors().front().type;
  for (const auto& tensor : file.tensors()) EXPECT_EQ(tensor.type, type) << tensor.name;
  return type;
}

class SavedRuns : public SystemRuns, public testing::WithParamInterface<const char*> {};

TEST_P(SavedRuns, ResumeToTheSameBitsFromRoundedWeights) {
  const auto of = [&](const char* output, const char* dtype, int steps) {
    return arguments(GetParam(), output,
                     cat(constant, "--set train.save_dtype=", dtype, " --set train.steps=", steps));
  };
  run(of("whole", "bf16", 4));
  run(of("parts", "bf16", 2));
  run(of("parts", "bf16", 4));
  expect_same_bytes("whole", "parts");
  EXPECT_EQ(type_of(path("parts/latest")), StoredType::bf16);
  run(of("exact", "f32", 4));
  EXPECT_EQ(type_of(path("exact/latest")), StoredType::f32);
  EXPECT_EQ(losses("exact"), losses("parts"));
}

INSTANTIATE_TEST_SUITE_P(Algorithms, SavedRuns, testing::Values("sft", "grpo"),
                         [](const auto& each) { return each.param; });

TEST_F(SystemRuns, SaveDtypeAutoIsThatOfTheModelsFiles) {
  const std::string two = "--set train.steps=1 --set train.save_dtype=auto ";
  run(arguments("sft", "f32", two));
  EXPECT_EQ(type_of(path("f32/latest")), StoredType::f32);
  run(arguments("grpo", "bf16", two));  // digit-completion is stored in BF16
  EXPECT_EQ(type_of(path("bf16/latest")), StoredType::bf16);
  run(arguments("sft", "f16", "--set train.steps=1 --set train.save_dtype=f16"));
  EXPECT_EQ(type_of(path("f16/latest")), StoredType::f16);
}

// The average of the weights is a model directory, and it and the loss scale are resumed. The first
// updates in f16 overflow.
TEST_F(SystemRuns, TheAverageOfTheWeightsAndTheLossScaleResumeToTheSameBits) {
  const std::string average = cat(constant, "--set train.ema_decay=0.5 ");
  int number = 0;
  for (const char* more :
       {"--set train.weights=bf16 --set train.gradients=bf16",
        "--set train.dtype=f16 --set train.loss_scale.initial=2097152 --set "
        "train.loss_scale.window=1 --set train.loss_scale.hysteresis=1 "
        "--set parallel.dp=2 --set parallel.zero=1",
        "--set parallel.pp=2 --set train.save_dtype=bf16", "--set parallel.tp=2"}) {
    SCOPED_TRACE(more);
    const std::string whole = cat("whole-", ++number), parts = cat("parts-", number);
    const auto of = [&](const std::string& output, int steps) {
      return arguments("sft", output, cat(average, more, " --set train.steps=", steps));
    };
    run(of(whole, 5));
    run(of(parts, 2));
    run(of(parts, 5));
    expect_same_bytes(whole, parts);
    const std::string folder = path(whole + "/latest/ema");
    EXPECT_EQ(type_of(folder), StoredType::f32);
    EXPECT_FALSE(value_or_throw(read_file(folder + "/model.safetensors")) ==
                 value_or_throw(read_file(path(whole + "/latest/model.safetensors"))))
        << "the average is not the last weights";
    EXPECT_EQ(launch::run_program("info " + folder).code, 0);
  }
  const std::string metrics = value_or_throw(read_file(path("whole-2/metrics.jsonl")));
  EXPECT_THAT(metrics, HasSubstr("\"loss_scale\""));
  EXPECT_THAT(metrics, HasSubstr("\"skipped\":1"));
}

TEST_F(SystemRuns, ACheckpointOfTheModelAloneIsSmallerAndIsNotResumed) {
  const std::string alone = cat(constant, "--set train.save_only_model=true --set train.steps=");
  EXPECT_THAT(run(arguments("sft", "a", alone + "2")), HasSubstr("this run cannot be resumed"));
  EXPECT_FALSE(std::filesystem::exists(path("a/latest/training/optimizer.safetensors")));
  EXPECT_TRUE(std::filesystem::exists(path("a/latest/training/manifest.json")));
  const auto again = launch::run_program(arguments("sft", "a", alone + "4"));
  EXPECT_EQ(again.code, 2) << again.err;
  EXPECT_THAT(again.err, HasSubstr("was saved without optimizer state (train.save_only_model)"));
  run(arguments("sft", "b", cat(constant, "--set train.steps=2")));
  EXPECT_EQ(losses("a"), losses("b"));
  const auto given = launch::run_program(arguments(
      "sft", "b", cat(constant, "--set train.steps=4 --set resume='", path("a/latest"), "'")));
  EXPECT_EQ(given.code, 2) << given.err;
  run(arguments("sft", "c",
                cat(constant, "--set train.steps=1 --set model='", path("a/latest"), "'")));
}

}  // namespace
}  // namespace troupe::test

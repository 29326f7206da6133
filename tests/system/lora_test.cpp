// Whole runs that train an adapter: they learn, resume, and save an adapter that can be used with
// its base model or merged.
#include <cmath>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using launch::data;

constexpr const char* lora =
    " --set lora.rank=4 --set lora.dropout=0.1 --set train.schedule=constant --set "
    "train.learning_rate=5e-3 ";

class LoraRuns : public SystemRuns, public testing::WithParamInterface<const char*> {};

TEST_P(LoraRuns, GoOnToTheSameBytes) {
  const auto of = [&](const char* output, int steps) {
    return arguments(GetParam(), output,
                     cat(lora, "--set train.save_every=0 --set train.steps=", steps));
  };
  run(of("whole", 8));
  run(of("parts", 4));
  run(of("parts", 8));
  expect_same_bytes("whole", "parts");
  EXPECT_TRUE(std::filesystem::exists(path("whole/latest/adapter_config.json")));
  EXPECT_FALSE(std::filesystem::exists(path("whole/latest/model.safetensors")))
      << "the base is not stored again";
}

TEST_P(LoraRuns, TensorsAndMetricsWithSmallMicroBatchesAndLarge) {
  const auto of = [&](const char* output, int tokens) {
    return arguments(
        GetParam(), output,
        cat(lora, "--set train.save_every=0 --set train.steps=4 --set train.micro_batch_tokens=",
            tokens));
  };
  run(of("small", 1));
  run(of("large", 65536));
  expect_same_tensors("small", "large");
}

INSTANTIATE_TEST_SUITE_P(Algorithms, LoraRuns, testing::Values("sft", "dpo", "grpo"),
                         [](const auto& each) { return each.param; });

// Values of {"logprobs"} lines.
std::vector<double> numbers(const std::string& lines) {
  std::vector<double> all;
  for (const Json& line : launch::json_lines(lines))
    for (const Json& value : line.find("logprobs")->array())
      if (value.is_number()) all.push_back(value.number());
  return all;
}

TEST_F(SystemRuns, AnAdapterIsUsedOverItsModelOrMerged) {
  run(arguments("sft", "a", cat(lora, "--set train.steps=6 --set train.save_every=0")));
  const std::string base = data("models/stories260k/hf"), adapter = path("a/latest");
  run(cat("merge --model '", base, "' --adapter '", adapter, "' --output '", path("merged"), "'"));
  const std::string row = R"({"ids": [1, 403, 407, 261, 378, 432, 317]})";
  const auto logprobs = [&](const std::string& model, const std::string& more) {
    const auto said = launch::run_program(cat("logprobs --model '", model, "' ", more), row + "\n");
    EXPECT_EQ(said.code, 0) << said.err;
    return numbers(said.out);
  };
  const auto over = logprobs(base, cat("--adapter '", adapter, "'")),
             merged = logprobs(path("merged"), ""), before = logprobs(base, "");
  ASSERT_EQ(over.size(), 6u);
  double moved = 0;
  for (std::size_t i = 0; i < over.size(); ++i) {
    EXPECT_NEAR(over[i], merged[i], 1e-4);
    moved = std::max(moved, std::abs(over[i] - before[i]));
  }
  EXPECT_GT(moved, 1e-3);
}

TEST_F(SystemRuns, AnAdapterToBeginWithIsWhereTheRunBeginsAndItResumesToTheSameBytes) {
  const auto first = [&](const char* output, const std::string& more) {
    return arguments("sft", output,
                     cat("--set train.schedule=constant --set train.learning_rate=5e-3 --set "
                         "train.save_every=0 ",
                         more));
  };
  run(first("a", "--set lora.rank=4 --set 'lora.rank_pattern={q_proj: 2}' --set train.steps=6"));
  const std::string given = cat("--set lora.adapter='", path("a/latest"), "' --set train.steps=");
  run(first("whole", given + "4"));
  run(first("parts", given + "2"));
  run(first("parts", given + "4"));
  expect_same_bytes("whole", "parts");
  run(cat("merge --model '", data("models/stories260k/hf"), "' --adapter '", path("a/latest"),
          "' --output '", path("merged"), "'"));
  run(first("after", cat("--set model='", path("merged"), "' --set train.steps=1")));
  run(first("fresh", "--set lora.rank=4 --set train.steps=1"));
  EXPECT_NEAR(losses("whole")[0], losses("after")[0], 1e-5);
  EXPECT_GT(std::abs(losses("whole")[0] - losses("fresh")[0]), 1e-2);
}

TEST_F(SystemRuns, AnAdapterGivenAsTheModelStandsForItsBaseWithIt) {
  const std::string first = cat(lora, "--set train.steps=3 --set train.save_every=0");
  run(arguments("sft", "a", first));
  const std::string base = data("models/stories260k/hf"), adapter = path("a/latest");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
    EXPECT_TRUE(std::filesystem::exists(cat(adapter, "/", name))) << name;
  const std::string both = cat(" --model '", base, "' --adapter '", adapter, "'"),
                    alone = cat(" --model '", adapter, "'"), row = "{\"text\": \"Once upon\"}\n";
  const auto said = [&](const std::string& arguments, const std::string& input) {
    const auto answer = launch::run_program(arguments, input);
    EXPECT_EQ(answer.code, 0) << answer.err;
    return answer.out;
  };
  EXPECT_EQ(said("logprobs" + alone, row), said("logprobs" + both, row));
  EXPECT_EQ(said(cat("generate --prompt 'Once upon' --max-new-tokens 9", alone), ""),
            said(cat("generate --prompt 'Once upon' --max-new-tokens 9", both), ""));
  EXPECT_NE(said("chat --max-new-tokens 4" + alone, "Hello\n"), "");
  EXPECT_NE(said("info '" + adapter + "'", "").find("the tensors match; --model"),
            std::string::npos);
  const std::string more = "--set train.steps=2 --set train.save_every=0 ";
  run(arguments("sft", "given", cat(more, "--set lora.adapter='", adapter, "'")));
  const std::string log = run(arguments("sft", "model", cat(more, "--set model='", adapter, "'")));
  EXPECT_NE(log.find("the run trains this adapter further"), std::string::npos) << log;
  expect_same_bytes("given", "model");
}

TEST_F(SystemRuns, AnAdapterGivenAsTheModelNoticesThatItsBaseHasChanged) {
  const std::string base = path("base");
  std::filesystem::copy(data("models/stories260k/hf"), base);
  run(arguments("sft", "a", cat(lora, "--set train.steps=1 --set model='", base, "'")));
  const std::string command =
      cat("generate --prompt Once --max-new-tokens 2 --model '", path("a/latest"), "'");
  EXPECT_EQ(launch::run_program(command).code, 0);
  std::string weights = value_or_throw(read_file(base + "/model.safetensors"));
  weights[weights.size() - 4] ^= 1;
  ASSERT_TRUE(write_file_durably(base + "/model.safetensors", weights));
  const auto said = launch::run_program(command);
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.err.find("was trained over: model.safetensors differs"), std::string::npos)
      << said.err;
}

TEST_F(SystemRuns, ACheckpointOfAnotherAdapterIsRefusedWithWords) {
  run(arguments("sft", "a", cat(lora, "--set train.steps=2 --set train.save_every=0")));
  const auto said = launch::run_program(arguments(
      "sft", "a", cat(lora, "--set lora.rank=2 --set train.steps=4 --set train.save_every=0")));
  EXPECT_NE(said.code, 0);
  EXPECT_NE(said.err.find("a different adapter"), std::string::npos) << said.err;
}

}  // namespace
}  // namespace troupe::test

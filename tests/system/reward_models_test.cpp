// Reward models as whole runs: trained, resumed, saved in Hugging Face's format, and used for
// rewards in one process and as a group of their own.
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

class RewardModels : public SystemRuns {
 protected:
  std::string train(const std::string& algorithm, const std::string& model, const std::string& rows,
                    const std::string& output, const std::string& more = "") const {
    return cat("train --algorithm ", algorithm, " --set model='", launch::data(model),
               "' --set data.path='", rows, "' --set output='", path(output),
               "' --set train.batch_size=4 --set train.threads=1 --set train.log_every=0 --set "
               "train.learning_rate=1e-3 ",
               more);
  }
  std::string written(const std::string& name, const std::string& text) const {
    value_or_throw(write_file_durably(path(name), text));
    return path(name);
  }
  std::string config_of(const std::string& output) const {
    return value_or_throw(read_file(path(output + "/latest/config.json")));
  }
  Json last_step(const std::string& output) const {
    return launch::json_lines(value_or_throw(read_file(path(output + "/metrics.jsonl")))).back();
  }
  /// Pairs that prefer correct continuations of digit sequences.
  std::string digit_pairs() const {
    std::string rows;
    for (int i = 1; i < 6; ++i)
      rows += cat("{\"prompt\":\"", i, ",", i + 1, ":\",\"chosen\":\"", i + 2, "\",\"rejected\":\"",
                  i, ",", i, "\"}\n");
    return written("pairs.jsonl", rows);
  }
};

const std::string hh = launch::data("datasets/pairwise/hh_rlhf_harmless_base_test_head.jsonl");

TEST_F(RewardModels, AnOutcomeModelResumesToTheSameBytesAndIsASequenceClassifier) {
  const auto orm = [&](const char* output, int steps) {
    return train("orm", "models/stories260k/hf", hh, output,
                 cat("--set train.max_length=300 --set train.schedule=constant --set "
                     "train.save_every=3 --set train.steps=",
                     steps));
  };
  run(orm("whole", 6));
  run(orm("parts", 3));
  run(orm("parts", 6));
  EXPECT_EQ(value_or_throw(read_file(path("whole/latest/model.safetensors"))),
            value_or_throw(read_file(path("parts/latest/model.safetensors"))));
  EXPECT_THAT(config_of("whole"), HasSubstr("LlamaForSequenceClassification"));
}

TEST_F(RewardModels, AnOutcomeModelLearnsToRankPairsAndIsScored) {
  const std::string pairs = digit_pairs();
  run(train("orm", "models/digit-completion", pairs, "orm",
            cat("--set train.steps=30 --set eval.path='", pairs, "'")));
  EXPECT_EQ(last_step("orm").find("eval/accuracy")->number(), 1);
  const launch::ProgramOutput said =
      launch::run_program(cat("score --model '", path("orm/latest"), "' --data '", pairs, "'"));
  ASSERT_EQ(said.code, 0) << said.err;
  const Json scored = value_or_throw(parse_json(said.out, "score"));
  EXPECT_EQ(scored.find("pairs")->number(), 5);
  EXPECT_EQ(scored.find("accuracy")->number(), 1);
  EXPECT_NEAR(scored.find("margin")->number(), last_step("orm").find("eval/margin")->number(),
              1e-5);
}

TEST_F(RewardModels, ProcessModelsOfBothKindsAreTrained) {
  const auto labelled = written(
      "steps.jsonl",
      "{\"prompt\":\"One day\",\"completions\":[\"he sat\",\"he ran\"],\"labels\":[true,false]}\n"
      "{\"prompt\":\"One day\",\"completions\":[\"she ran\",\"she "
      "sat\"],\"labels\":[false,true]}\n");
  run(train("prm", "models/stories260k/hf", labelled, "classes",
            cat("--set train.steps=8 --set eval.path='", labelled, "'")));
  EXPECT_THAT(config_of("classes"), HasSubstr("LlamaForTokenClassification"));
  EXPECT_EQ(last_step("classes").find("eval/accuracy")->number(), 1);
  const auto marked =
      written("marked.jsonl",
              "{\"input\":\"One day he sat to\\nThen he ran to\",\"value\":[\"was\",\"she\"]}\n"
              "{\"input\":\"One day he ran to\\nThen he sat to\",\"value\":[\"she\",\"was\"]}\n");
  run(train("prm", "models/stories260k/hf", marked, "placeholder",
            cat("--set prm.kind=placeholder --set prm.placeholder=to --set "
                "'prm.reward_tokens=[was, she]' --set train.steps=12 --set "
                "eval.path='",
                marked, "'")));
  EXPECT_THAT(config_of("placeholder"), HasSubstr("LlamaForCausalLM"));
  EXPECT_EQ(last_step("placeholder").find("eval/accuracy")->number(), 1);
}

TEST_F(RewardModels, APlaceholderOfSeveralTokensStopsTheRunByItsKey) {
  const auto rows = written("marked.jsonl", "{\"input\":\"a\",\"value\":[\"was\"]}\n");
  const launch::ProgramOutput said =
      launch::run_program(train("prm", "models/stories260k/hf", rows, "out",
                                "--set prm.kind=placeholder --set train.steps=1"));
  EXPECT_NE(said.code, 0);
  EXPECT_THAT(said.err, HasSubstr("prm.placeholder: expected a text that is exactly one token"));
}

TEST_F(RewardModels, RewardSamplesBesideRulesInOneProcessAndAsAGroupToTheSameBytes) {
  run(train("orm", "models/digit-completion", digit_pairs(), "orm", "--set train.steps=10"));
  const auto grpo = [&](const char* output) {
    return arguments(
        "grpo", output,
        cat("--set train.steps=4 --set train.save_every=0 --set 'reward=[{rule: model, path: \"",
            path("orm/latest"),
            "\", weight: 2, normalize: given, mean: 0.5, std: 2}, {rule: exact_match}]'"));
  };
  run(grpo("one"));
  EXPECT_NE(last_step("one").find("rewards/model/mean"), nullptr);
  EXPECT_NE(last_step("one").find("rewards/exact_match/mean"), nullptr);
  written("cluster.yaml",
          "groups: [{role: policy}, {role: reference}, {role: rollout}, {role: reward}, {role: "
          "verifier}]");
  run(cat("launch --cluster '", path("cluster.yaml"), "' -- ", grpo("cluster")));
  expect_same_bytes("one", "cluster");
}

TEST_F(RewardModels, OfAnotherVocabularyAreRefusedBeforeTheFirstSample) {
  run(train("orm", "models/stories260k/hf", hh, "orm",
            "--set train.steps=1 --set train.max_length=300"));
  const launch::ProgramOutput said =
      launch::run_program(arguments("grpo", "refused",
                                    cat("--set train.steps=1 --set 'reward=[{rule: model, path: \"",
                                        path("orm/latest"), "\"}]'")));
  EXPECT_NE(said.code, 0);
  EXPECT_THAT(said.err, HasSubstr("has a different tokenizer from the policy"));
}

}  // namespace
}  // namespace troupe::test

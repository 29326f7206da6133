// Preference runs: interrupted and resumed runs write the same bytes, including a moving reference;
// held-out pairs are evaluated; invalid settings are rejected with a message.
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

const std::string held_out =
    "--set eval.path='" + launch::data("datasets/pairwise/hh_rlhf_harmless_base_test_head.jsonl") +
    "' ";

struct ResumedPreference {
  const char *title, *algorithm, *more;
};
void PrintTo(const ResumedPreference& run, std::ostream* out) {
  *out << run.title;
}

class PreferenceResumed : public SystemRuns,
                          public testing::WithParamInterface<ResumedPreference> {};

// A run of six steps, and one of three that is resumed up to six.
TEST_P(PreferenceResumed, EndsInTheBytesOfARunThatWasNeverInterrupted) {
  const auto six = [&](const char* output, int steps) {
    return arguments(
        GetParam().algorithm, output,
        cat("--set train.schedule=constant --set train.save_every=3 --set eval.every=2 ", held_out,
            GetParam().more, " --set train.steps=", steps));
  };
  run(six("whole", 6));
  run(six("halves", 3));
  run(six("halves", 6));
  const auto whole = read_file(path("whole/latest/model.safetensors")),
             halves = read_file(path("halves/latest/model.safetensors"));
  ASSERT_TRUE(whole && halves);
  EXPECT_TRUE(*whole == *halves) << "the weights differ";
  if (!std::filesystem::exists(path("whole/reference"))) return;
  EXPECT_TRUE(value_or_throw(read_file(path("whole/reference/latest/model.safetensors"))) ==
              value_or_throw(read_file(path("halves/reference/latest/model.safetensors"))))
      << "the reference's weights differ";
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, PreferenceResumed,
    testing::Values(
        ResumedPreference{
            "Mixture", "dpo",
            "--set 'dpo.loss=[sigmoid, bco_pair, sft]' --set 'dpo.loss_weights=[0.8, 0.2, 1]'"},
        ResumedPreference{"MovingReference", "dpo", "--set dpo.sync_every=2"},
        ResumedPreference{"MovingReferenceInBf16", "dpo",
                          "--set dpo.sync_every=2 --set train.save_dtype=bf16"},
        ResumedPreference{"Sorted", "dpo", "--set dpo.loss=aot"},
        ResumedPreference{"Weighted", "dpo", "--set dpo.weighting=true"},
        ResumedPreference{"Simpo", "simpo", ""}, ResumedPreference{"Cpo", "cpo", ""},
        ResumedPreference{"Orpo", "orpo", ""},
        ResumedPreference{"Kto", "kto", "--set kto.sync_every=2"}),
    [](const auto& each) { return std::string(each.param.title); });

TEST_F(SystemRuns, AReferenceThatFollowsMovesAndIsSavedUnderThePolicysStep) {
  const auto dpo = [&](const char* output, const char* more) {
    return arguments("dpo", output, cat("--set train.steps=4 --set train.save_every=0 ", more));
  };
  run(dpo("stays", ""));
  run(dpo("follows", "--set dpo.sync_every=2 --set dpo.sync_share=0.5"));
  EXPECT_FALSE(std::filesystem::exists(path("stays/reference")));
  EXPECT_TRUE(std::filesystem::exists(path("follows/reference/checkpoint-4/model.safetensors")));
  const auto still = losses("stays"), moved = losses("follows");
  EXPECT_EQ(still[1], moved[1]);
  EXPECT_NE(still[2], moved[2]);
}

// A run with a policy and a reference of two ranks each.
TEST_F(SystemRuns, AReferenceThatFollowsAShardedPolicyIsTheSameModel) {
  const auto dpo = [&](const char* output, const char* more) {
    return arguments(
        "dpo", output,
        cat("--set train.steps=5 --set train.save_every=0 --set dpo.sync_every=2 ", more));
  };
  run(dpo("alone", ""));
  run(dpo("sharded", "--set parallel.tp=2"));
  const auto one = losses("alone"), two = losses("sharded");
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(one[i], two[i], 2e-5) << "step " << i + 1;
}

TEST_F(SystemRuns, HeldOutPairsAreWrittenWhereTheyAreDue) {
  run(arguments("simpo", "run",
                cat("--set train.steps=5 --set train.save_every=0 --set eval.every=2 ", held_out)));
  std::size_t step = 0;
  for (const Json& line :
       launch::json_lines(value_or_throw(read_file(path("run/metrics.jsonl"))))) {
    ++step;
    const bool due = step == 2 || step == 4 || step == 5;
    EXPECT_EQ(line.find("eval/rewards/margins") != nullptr, due) << step;
    EXPECT_EQ(line.find("eval/loss") != nullptr, due) << step;
  }
  EXPECT_EQ(step, 5u);
}

TEST_F(SystemRuns, HeldOutRowsOfFineTuningAreWrittenWhereTheyAreDueAndChangeNothing) {
  const auto sft = [&](const char* output, const std::string& more) {
    return arguments("sft", output, cat("--set train.steps=5 --set train.save_every=0 ", more));
  };
  run(sft("alone", ""));
  run(sft("watched", cat("--set eval.every=2 --set eval.path='",
                         launch::data("datasets/math/gsm8k_train_head.jsonl"), "' ")));
  std::size_t step = 0;
  for (const Json& line :
       launch::json_lines(value_or_throw(read_file(path("watched/metrics.jsonl"))))) {
    ++step;
    EXPECT_EQ(line.find("eval/loss") != nullptr, step == 2 || step == 4 || step == 5) << step;
    if (step < 5) continue;
    EXPECT_NEAR(line.find("eval/loss")->number(), line.find("eval/nll")->number(), 1e-9);
  }
  EXPECT_EQ(losses("alone"), losses("watched"));
}

TEST_F(SystemRuns, PreferencesThatContradictThemselvesAreRefusedInWords) {
  const auto refused = [&](const char* algorithm, const char* more, const char* words) {
    const auto said = launch::run_program(arguments(algorithm, "run", more));
    EXPECT_NE(said.code, 0) << more;
    EXPECT_NE(said.err.find(words), std::string::npos) << said.err;
  };
  refused("dpo", "--set dpo.sync_every=2 --set dpo.precompute_reference=true",
          "cannot be scored before the first one");
  refused("dpo", "--set dpo.loss=sigmoid --set dpo.label_smoothing=0.1", "cdpo or robust");
  refused("dpo", "--set 'dpo.loss=[sigmoid, sft]' --set 'dpo.loss_weights=[1]'",
          "one for each of the 2 losses");
  refused("dpo", "--set dpo.loss=bco_pair --set dpo.divergence=forward_kl", "reverse_kl");
  refused("dpo", "--set dpo.loss=sigmoyd", "did you mean sigmoid");
  refused("simpo", "--set simpo.gamma=0.5 --set simpo.gamma_beta_ratio=0.3",
          "the same margin in another unit");
  refused("kto", "--set train.batch_size=1", "expected at least 2");
}

TEST_F(SystemRuns, TrapsOfSimpoAreWarnedOf) {
  const auto said = run(arguments(
      "simpo", "run",
      "--set train.steps=1 --set simpo.nll_weight=1 --set simpo.beta=0.1 --set simpo.gamma=0.5"));
  EXPECT_NE(said.find("CPO-SimPO, not SimPO"), std::string::npos) << said;
  EXPECT_NE(said.find("the target margin of the mean log-probabilities is 5"), std::string::npos)
      << said;
}

}  // namespace
}  // namespace troupe::test

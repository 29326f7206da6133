// GRPO's state besides the weights: an interrupted and resumed run writes the same bytes as an
// uninterrupted one.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "engine/base/files/file.h"
#include "engine/base/sets/id_sets.h"
#include "engine/base/text/base64.h"
#include "engine/base/text/text.h"
#include "tests/support/sanitized.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

struct ResumedGrpo {
  const char *title, *more;
};
void PrintTo(const ResumedGrpo& run, std::ostream* out) {
  *out << run.title;
}

class GrpoResumed : public SystemRuns, public testing::WithParamInterface<ResumedGrpo> {};

// A rollout step has two training steps.
TEST_P(GrpoResumed, EndsInTheSameBytes) {
  const auto of = [&](const char* output, int steps) {
    return arguments("grpo", output,
                     cat("--set train.schedule=constant --set train.save_every=0 ", GetParam().more,
                         " --set train.steps=", steps));
  };
  run(of("whole", 8));
  run(of("parts", 4));
  run(of("parts", 8));
  expect_same_bytes("whole", "parts");
}

INSTANTIATE_TEST_SUITE_P(
    Settings, GrpoResumed,
    testing::Values(
        ResumedGrpo{"AdaptiveEntropy",
                    "--set grpo.entropy_schedule=adaptive --set grpo.entropy_target=1.2 --set "
                    "grpo.entropy_delta=0.05"},
        ResumedGrpo{
            "DecoupledPpo",
            "--set grpo.proximal=loglinear --set grpo.correction=token --set grpo.epochs=2"},
        ResumedGrpo{"SamplingMasks",
                    "--set rollout.top_p=0.8 --set rollout.min_new_tokens=2 --set grpo.epochs=2"},
        ResumedGrpo{
            "ClipCov",
            "--set grpo.policy_loss=clip_cov --set grpo.cov_ratio=0.1 --set grpo.cov_low=0.01"},
        ResumedGrpo{"RolloutsIn8BitsAndRounding",
                    "--set rollout.weights=int8 --set grpo.correction=token --set "
                    "train.weights=bf16"},
        ResumedGrpo{"Bf16Moments", "--set train.moments=bf16"},
        ResumedGrpo{"KlCov", "--set grpo.policy_loss=kl_cov --set grpo.cov_ratio=0.1"}),
    [](const auto& each) { return std::string(each.param.title); });

TEST_F(SystemRuns, TheEntropyBonusFollowsTheEntropy) {
  run(arguments("grpo", "run",
                "--set train.steps=6 --set train.save_every=0 --set grpo.entropy_schedule=adaptive "
                "--set grpo.entropy_coef=0.1 --set "
                "grpo.entropy_target=1e-3 --set grpo.entropy_delta=0.05"));
  const auto lines = launch::json_lines(value_or_throw(read_file(path("run/metrics.jsonl"))));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0].find("entropy_coef")->number(), 0.1) << "as the key says";
  for (std::size_t i = 1; i < 6; ++i)
    EXPECT_EQ(lines[i].find("entropy_coef")->number(), 0) << "the entropy is far above its target";
}

// The number of MiB after the last occurrence of the text.
double mebibytes_after(const std::string& text, const std::string& words) {
  const auto at = text.rfind(words);
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + words.size(), nullptr);
}

// Pages of the KV cache beyond the sequences of a batch never become resident.
TEST_F(SystemRuns, ThePeakOfARunIsWhatWasResidentAndNoMoreThanExplainSays) {
  const std::string run_of =
      arguments("grpo", "run",
                "--set train.steps=2 --set rollout.max_sequences=256 --set train.warmup_steps=0");
  const std::string explained =
      launch::run_program("explain" + run_of.substr(run_of.find(' '))).out;
  const double needed = mebibytes_after(explained, "\n  needed"),
               cache = mebibytes_after(explained, "tokens (at most)");
  EXPECT_LE(cache, 16) << "at most (4 + 1) samples of 4 prompts at a time\n" << explained;
  const double taken = mebibytes_after(run(run_of), "peak resident memory ");
  EXPECT_GE(taken, 20);
  if (!sanitized) {
    EXPECT_LE(taken, 1.1 * needed);
  }
}

TEST_F(SystemRuns, RolloutsIn8BitsSayHowFarTheyAreFromThePolicy) {
  for (const char* algorithm : {"grpo", "ppo"}) {
    run(arguments(algorithm, algorithm,
                  "--set train.steps=4 --set train.save_every=0 --set rollout.weights=int8"));
    for (const Json& line :
         launch::json_lines(value_or_throw(read_file(path(cat(algorithm, "/metrics.jsonl")))))) {
      const Json* difference = line.find("sampling/sampling_logp_difference/mean");
      ASSERT_NE(difference, nullptr) << algorithm;
      EXPECT_GT(difference->number(), 1e-6) << algorithm;
      EXPECT_LT(difference->number(), 0.05) << algorithm;
    }
  }
}

constexpr std::int64_t vocabulary = 16;  // of digit-completion

// With recompute_old_logp the policy scores every fresh sample: over the tokens that were left to
// sample from it has the bits of the rollout, on any placement.
TEST_F(SystemRuns, SamplingMasksGiveThePolicyTheBitsOfTheRollout) {
  const std::string masked =
      "--set train.steps=3 --set train.save_every=0 --set rollout.top_p=0.8 --set rollout.top_k=20 "
      "--set rollout.min_new_tokens=2 --set grpo.recompute_old_logp=true ";
  for (const auto& [name, more] :
       {std::pair{"off", ""},
        {"pinned", "--set async.mode=pinned --set async.eta=0"},
        {"tp2", "--set parallel.tp=2 --set parallel.rollout.tp=2"},
        {"pp2_dp2", "--set parallel.pp=2 --set parallel.dp=2 --set parallel.rollout.pp=2"},
        {"lora_bf16", "--set lora.rank=4 --set train.dtype=bf16"},
        {"lookup", "--set rollout.lookup=4"},
        {"free", "--set async.mode=free --set async.eta=0"}}) {
    run(arguments("grpo", name, cat(masked, more)));
    const auto lines =
        launch::json_lines(value_or_throw(read_file(path(cat(name, "/metrics.jsonl")))));
    ASSERT_EQ(lines.size(), 3u) << name;
    for (const Json& line : lines) {
      const Json* difference = line.find("sampling/sampling_logp_difference/max");
      ASSERT_NE(difference, nullptr) << name;
      EXPECT_EQ(difference->number(), 0) << name;
    }
  }
}

struct Recorded {
  std::vector<std::int64_t> ids;
  std::vector<double> logprobs;
  double difference = 0;  ///< to the trainer's
};

// One step from equal weights: the samples are the same whatever is trained. Without replay the
// trainer's policy gives a token less than the probability with which it was sampled.
TEST_F(SystemRuns, SamplingMasksMakeTheRatioToTheBehaviourOne) {
  const auto recorded = [&](const std::string& name, const std::string& filter, const char* mode) {
    const std::string output = cat(name, "-", mode);
    run(arguments("grpo", output,
                  cat("--set train.steps=1 --set train.save_every=0 --set rollout.record=all "
                      "--set grpo.recompute_old_logp=true --set rollout.replay_sampling_mask=",
                      mode, " ", filter)));
    Recorded out;
    for (const Json& line :
         launch::json_lines(value_or_throw(read_file(path(cat(output, "/samples.jsonl")))))) {
      for (const Json& id : line.find("ids")->array()) out.ids.push_back(id.integer());
      for (const Json& logp : line.find("logprobs")->array()) out.logprobs.push_back(logp.number());
    }
    out.difference =
        value_or_throw(
            parse_json(value_or_throw(read_file(path(cat(output, "/metrics.jsonl")))), "metrics"))
            .find("sampling/sampling_logp_difference/max")
            ->number();
    return out;
  };
  for (const auto& [name, filter] : {std::pair{"top_p", "--set rollout.top_p=0.8"},
                                     {"top_k", "--set rollout.top_k=3"},
                                     {"min_p", "--set rollout.min_p=0.6"}}) {
    const Recorded behaviour = recorded(name, filter, "on"), whole = recorded(name, filter, "off");
    ASSERT_EQ(behaviour.ids, whole.ids) << name;
    EXPECT_EQ(behaviour.difference, 0) << name << ": the trainer's bits, so each ratio is 1";
    EXPECT_EQ(whole.difference, 0) << name;
    double sum = 0;
    std::size_t outside = 0;
    for (std::size_t t = 0; t < whole.logprobs.size(); ++t) {
      const double ratio = std::exp(whole.logprobs[t] - behaviour.logprobs[t]);
      sum += ratio;
      outside += ratio < 0.9 || ratio > 1.1 ? 1 : 0;
    }
    const auto count = static_cast<double>(whole.logprobs.size());
    EXPECT_LT(sum / count, 0.97) << name;
    EXPECT_GT(static_cast<double>(outside) / count, 0.1) << name;
    std::cout << cat(name, ": mean ratio without replay ", sum / count, ", outside of 0.9 to 1.1 ",
                     static_cast<double>(outside) / count, "\n");
  }
}

TEST_F(SystemRuns, RolloutsAndPolicyAgreeOverTheVocabularyWhereTheirWeightsDo) {
  const auto differences = [&](const char* algorithm, const std::string& name,
                               const std::string& more) {
    run(arguments(algorithm, name,
                  cat("--set train.steps=2 --set train.save_every=0 --set "
                      "rollout.parity_sample=0.2 ",
                      more)));
    std::vector<double> out;
    for (const Json& line :
         launch::json_lines(value_or_throw(read_file(path(cat(name, "/metrics.jsonl")))))) {
      const Json *mean = line.find("sampling/vocabulary_difference/mean"),
                 *max = line.find("sampling/vocabulary_difference/max");
      if (mean == nullptr || max == nullptr) {
        ADD_FAILURE() << name << ": " << line.dump();
        continue;
      }
      EXPECT_LE(mean->number(), max->number());
      out.push_back(max->number());
    }
    EXPECT_EQ(out.size(), 2u) << name;
    return out;
  };
  for (const auto& [name, more] :
       {std::pair{"temperature", "--set rollout.temperature=0.7"},
        {"masks", "--set rollout.top_p=0.8 --set rollout.top_k=20"},
        {"tp2", "--set parallel.tp=2 --set parallel.rollout.tp=2"},
        {"pp2_dp2", "--set parallel.pp=2 --set parallel.dp=2 --set parallel.rollout.pp=2"}})
    EXPECT_THAT(differences("grpo", name, more), testing::Each(0)) << name;
  EXPECT_THAT(differences("ppo", "ppo", ""), testing::Each(0));
  for (const double difference :
       differences("grpo", "int8", "--set rollout.weights=int8 --set rollout.top_p=0.8")) {
    EXPECT_GT(difference, 1e-6);
    EXPECT_LT(difference, 0.5);
  }
}

TEST_F(SystemRuns, SamplingMasksAreInTheRecordedSamples) {
  run(arguments("grpo", "run",
                "--set train.steps=1 --set train.save_every=0 --set rollout.top_k=3 "
                "--set rollout.record=all"));
  const auto lines = launch::json_lines(value_or_throw(read_file(path("run/samples.jsonl"))));
  ASSERT_FALSE(lines.empty());
  for (const Json& line : lines) {
    const auto &ids = line.find("ids")->array(), &masks = line.find("sampling_masks")->array(),
               &logprobs = line.find("logprobs")->array();
    ASSERT_EQ(masks.size(), ids.size());
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const auto kept =
          value_or_throw(decode_id_set(*decode_base64(masks[t].string()), vocabulary));
      EXPECT_GE(kept.size(), 3u) << "the three most likely, and their equals";
      EXPECT_NE(std::ranges::find(kept, ids[t].integer()), kept.end());
      EXPECT_LE(logprobs[t].number(), 0);
    }
  }
}

}  // namespace
}  // namespace troupe::test

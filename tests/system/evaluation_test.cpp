// Evaluation of whole runs: it changes no bit of the training, agrees with `troupe eval`, selects
// the best checkpoint and ends runs, and all of that survives kills.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

class Evaluated : public SystemRuns {
 protected:
  Evaluated() {
    const auto rows = value_or_throw(read_file(TROUPE_SOURCE "/launch/quickstart/test.jsonl"));
    std::size_t end = 0;
    for (int row = 0; row < 24; ++row) end = rows.find('\n', end) + 1;
    value_or_throw(write_file_durably(path("held-out.jsonl"), rows.substr(0, end)));
  }
  std::string eval_keys() const {
    return cat(" --set eval.path='", path("held-out.jsonl"), "' --set eval.every=2 ");
  }
  std::vector<Json> metrics(const std::string& output) const {
    return launch::json_lines(value_or_throw(read_file(path(output + "/metrics.jsonl"))));
  }
  std::string linked(const std::string& link) const {
    return std::filesystem::read_symlink(path(link)).string();
  }
};

TEST_F(Evaluated, TheTrainingHasTheSameBitsWithAndWithoutIt) {
  for (const char* algorithm : {"grpo", "ppo"}) {
    const auto of = [&](const std::string& output, const std::string& more) {
      return arguments(algorithm, cat(algorithm, output),
                       cat("--set train.steps=6 --set train.save_every=0 ", more));
    };
    run(of("alone", ""));
    run(of("watched", cat(eval_keys(), "--set eval.samples=3")));
    for (const char* file : {"model.safetensors", "training/optimizer.safetensors"})
      EXPECT_EQ(value_or_throw(read_file(path(cat(algorithm, "alone/latest/", file)))),
                value_or_throw(read_file(path(cat(algorithm, "watched/latest/", file)))))
          << algorithm;
    const auto alone = metrics(cat(algorithm, "alone"));
    auto watched = metrics(cat(algorithm, "watched"));
    ASSERT_EQ(watched.size(), 7u);
    EXPECT_EQ(watched[0].find("step")->integer(), 0);
    EXPECT_NE(watched[0].find("eval/pass@2"), nullptr);
    EXPECT_EQ(watched[0].find("loss"), nullptr);
    for (std::size_t step = 1; step <= 6; ++step) {
      // PPO makes four updates of a rollout step.
      const bool ends = std::string(algorithm) == "grpo" ? step % 2 == 0 : step == 4 || step == 6;
      EXPECT_EQ(watched[step].find("eval/reward") != nullptr, ends) << algorithm << ' ' << step;
      std::erase_if(watched[step].object(),
                    [](const auto& member) { return member.first.starts_with("eval/"); });
      EXPECT_EQ(watched[step].dump(), alone[step - 1].dump()) << algorithm;
    }
  }
}

TEST_F(Evaluated, ACheckpointHasTheValuesThatTheRunReported) {
  run(arguments("grpo", "run",
                cat("--set train.steps=4 --set train.save_every=0 --set train.seed=5 ", eval_keys(),
                    "--set eval.samples=4")));
  const auto said = launch::run_program(
      cat("eval --model '", path("run/latest"), "' --data '", path("held-out.jsonl"),
          "' --reward '[{rule: exact_match}, {rule: length, max: 6, weight: 0.5}]' --n 4 --seed 5 "
          "--max-new-tokens 12 --set train.max_length=64 --json"));
  ASSERT_EQ(said.code, 0) << said.err;
  const Json found = launch::json_lines(said.out).front();
  const Json last = metrics("run").back();
  for (const char* name :
       {"pass@1", "pass@2", "pass@4", "reward", "rewards/exact_match/mean", "rewards/length/mean"})
    EXPECT_NEAR(found.find(name)->find("value")->number(), last.find(cat("eval/", name))->number(),
                1e-12)
        << name;
  EXPECT_EQ(found.find("completions/mean_length")->number(),
            last.find("eval/completions/mean_length")->number());
}

TEST_F(Evaluated, AnAdapterIsAModelOfItsOwn) {
  run(arguments("grpo", "run",
                "--set train.steps=2 --set train.save_every=0 --set lora.rank=4 --set "
                "train.learning_rate=5e-2 "));
  const auto evaluated = [&](const std::string& model) {
    const auto said =
        launch::run_program(cat("eval --data '", path("held-out.jsonl"),
                                "' --reward exact_match --n 2 --max-new-tokens 12 ", model));
    EXPECT_EQ(said.code, 0) << said.err;
    return said.out;
  };
  const std::string base = launch::data("models/digit-completion");
  const std::string adapted = evaluated(cat("--model '", path("run/latest"), "'"));
  EXPECT_EQ(adapted, evaluated(cat("--model '", base, "' --adapter '", path("run/latest"), "'")));
  EXPECT_NE(adapted, evaluated(cat("--model '", base, "'")));
}

TEST_F(Evaluated, TheMetricsAreTheOnesThatCanBeSelected) {
  const auto held_out = [&](const char* rows) {
    return cat(" --set eval.path='", launch::data(rows),
               "' --set train.steps=1 --set "
               "train.save_every=0 ");
  };
  const std::string pairs = held_out("datasets/pairwise/hh_rlhf_harmless_base_test_head.jsonl");
  const std::pair<const char*, std::string> runs[] = {
      {"sft", held_out("datasets/math/gsm8k_train_head.jsonl")},
      {"dpo", pairs},
      {"simpo", pairs},
      {"orpo", pairs},
      {"kto", pairs},
      {"orm", pairs},
      {"grpo", cat(eval_keys(), "--set train.steps=1 --set eval.samples=4 ")}};
  for (const auto& [algorithm, more] : runs) {
    run(arguments(algorithm, algorithm, more));
    const auto refused = launch::run_program(
        arguments(algorithm, "none", more + " --set train.keep_best=+eval/none"));
    ASSERT_EQ(refused.code, 2) << refused.err;
    int seen = 0;
    const Json last = metrics(algorithm).back();
    for (const auto& [name, value] : last.object()) {
      if (!name.starts_with("eval/")) continue;
      ++seen;
      EXPECT_NE(refused.err.find(name), std::string::npos) << algorithm << ": " << name;
    }
    EXPECT_GT(seen, 1) << algorithm;
  }
}

TEST_F(Evaluated, TheBestCheckpointSurvivesKills) {
  const auto of = [&](const std::string& output) {
    return arguments(
        "sft", output,
        cat("--set train.steps=9 --set train.save_every=3 --set "
            "train.schedule=constant --set train.learning_rate=2e-2 --set eval.every=1 "
            "--set train.keep_best=eval/loss --set eval.path='",
            launch::data("datasets/math/gsm8k_test_head.jsonl"), "' "));
  };
  run(of("whole"));
  int kills = 0;
  for (std::uint64_t life = 0; life < 6; ++life) {
    Child child(command(of("killed")), log());
    const std::size_t steps = steps_written("killed") + uniform_below(3, 8, 0, life);
    child.until([&] { return steps_written("killed") > steps; });
    child.signal(SIGKILL);
    if (child.wait() == 0) break;
    ++kills;
  }
  EXPECT_GE(kills, 1) << "nobody was killed";
  run(of("killed"));
  expect_same_bytes("whole", "killed");
  EXPECT_EQ(linked("whole/best"), linked("killed/best"));
  double best = 1e9;
  std::int64_t step = 0;
  for (const Json& line : metrics("whole"))
    if (line.find("eval/loss")->number() < best) {
      best = line.find("eval/loss")->number();
      step = line.find("step")->integer();
    }
  EXPECT_EQ(linked("whole/best"), cat("checkpoint-", step));
  EXPECT_TRUE(std::filesystem::exists(path("whole/best/model.safetensors")));
}

TEST_F(Evaluated, ARunThatNoLongerImprovesEndsAndResumesWithMorePatience) {
  // The loss falls from the first step on, and a higher one counts as better.
  const auto of = [&](const std::string& output, int patience) {
    return arguments(
        "sft", output,
        cat("--set train.schedule=constant --set train.save_every=0 --set "
            "train.steps=40 --set eval.every=1 --set eval.path='",
            launch::data("datasets/math/gsm8k_test_head.jsonl"),
            "' --set 'train.early_stopping={metric: +eval/loss, patience: ", patience, "}'"));
  };
  const std::string said = run(of("parts", 3));
  EXPECT_THAT(said, HasSubstr("early stopping: eval/loss has not improved for 3 evaluations"));
  const std::size_t ended = steps_written("parts");
  ASSERT_LT(ended, 40u);
  EXPECT_EQ(linked("parts/latest"), cat("checkpoint-", ended));
  EXPECT_THAT(run(of("parts", 3)), HasSubstr("already complete (early stopping at step"));
  EXPECT_EQ(steps_written("parts"), ended) << "nothing was trained";
  run(of("parts", 5));
  run(of("whole", 5));
  EXPECT_GT(steps_written("parts"), ended);
  expect_same_bytes("whole", "parts");
}

TEST_F(Evaluated, AKilledEvaluationContinuesToTheSameFile) {
  const auto of = [&](const std::string& output) {
    return cat(
        "eval --model '", launch::data("models/digit-completion"),
        "' --data '" TROUPE_SOURCE
        "/launch/quickstart/test.jsonl' --reward exact_match --n 4 --seed 1 --max-new-tokens "
        "12 --threads 1 --set rollout.max_sequences=4 --output '",
        path(output), "'");
  };
  const auto lines = [&](const std::string& output) {
    const std::string text = read_file(path(output)).value_or("");
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  };
  const auto whole = launch::run_program(of("whole.jsonl"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  ASSERT_EQ(lines("whole.jsonl"), 200u);
  int kills = 0;
  for (const std::size_t at : {1u, 60u, 150u}) {
    Child child(command(of("killed.jsonl")), log());
    child.until([&] { return lines("killed.jsonl") >= at; });
    child.signal(SIGKILL);
    if (child.wait() == 0) continue;
    ++kills;
    const std::string text = value_or_throw(read_file(path("killed.jsonl")));
    ASSERT_TRUE(write_file_durably(path("killed.jsonl"), text.substr(0, text.size() - 5)));
  }
  EXPECT_GE(kills, 1) << "nobody was killed";
  const auto resumed = launch::run_program(of("killed.jsonl"));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.out, whole.out);
  EXPECT_EQ(value_or_throw(read_file(path("killed.jsonl"))),
            value_or_throw(read_file(path("whole.jsonl"))));
}

}  // namespace
}  // namespace troupe::test

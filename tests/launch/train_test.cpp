// Whole runs of the built program: their files, which interruptions do not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/launch/program.h"

namespace troupe::launch::train_test {
namespace {

using testing::HasSubstr;

/// Rows for all algorithms.
std::string rows_file(const std::string& folder) {
  std::string text;
  for (int i = 0; i < 24; ++i) {
    text += cat("{\"prompt\":\"Tell a story, number ", i,
                ".\",\"completion\":\" Once upon a time there were ", i,
                " cats.\",\"chosen\":\" A good one, ", i,
                ".\",\"rejected\":\" No.\",\"answer\":\"the\"}\n");
  }
  const std::string path = folder + "/rows.jsonl";
  EXPECT_TRUE(write_file_durably(path, text));
  return path;
}

class Runs : public testing::Test {
 protected:
  std::string arguments(const std::string& algorithm, const std::string& output,
                        const std::string& more = "") const {
    return cat("train --algorithm ", algorithm, " --set model=", data("models/stories260k/hf"),
               " --set data.path=", rows_, " --set output=", folder_, '/', output,
               " --set train.steps=6 --set train.batch_size=4 --set train.max_length=64 --set "
               "train.learning_rate=1e-3 "
               "--set train.save_every=2 --set train.keep_last=0 --set train.threads=1 ",
               more);
  }
  std::string text(const std::string& path) const {
    return read_file(cat(folder_, '/', path)).value_or("no file");
  }

  /// The status of a bash script, as returned by std::system.
  int run_script(const std::string& script) const {
    EXPECT_TRUE(write_file_durably(folder_ + "/script", script));
    return std::system(cat("bash ", folder_, "/script </dev/null").c_str());
  }

  void expect_equal_ends(const std::string& one, const std::string& other) const {
    for (const char* file :
         {"/checkpoint-6/model.safetensors", "/checkpoint-6/training/optimizer.safetensors",
          "/checkpoint-6/training/state.json", "/checkpoint-6/config.json", "/metrics.jsonl"}) {
      EXPECT_TRUE(text(one + file) == text(other + file)) << file;
      EXPECT_NE(text(one + file), "no file") << file;
    }
  }

  std::string folder_ = scratch_folder();
  std::string rows_ = rows_file(folder_);
};

TEST_F(Runs, LeaveMetricsCheckpointsAndAPlot) {
  const ProgramOutput said = run_program(arguments("sft", "a"));
  ASSERT_EQ(said.code, 0) << said.err;
  const auto lines = json_lines(text("a/metrics.jsonl"));
  ASSERT_EQ(lines.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(lines[i].find("step")->integer(), static_cast<std::int64_t>(i) + 1);
    EXPECT_TRUE(lines[i].find("loss")->is_number());
    EXPECT_TRUE(lines[i].find("grad_norm")->is_number());
  }
  EXPECT_LT(lines[5].find("loss")->number(), lines[0].find("loss")->number());
  EXPECT_THAT(text("a/plot.svg"), HasSubstr("grad_norm"));
  EXPECT_THAT(text("a/config.yaml"), HasSubstr("steps: 6"));
  EXPECT_EQ(std::filesystem::read_symlink(folder_ + "/a/latest"), "checkpoint-6");
  EXPECT_THAT(said.err, HasSubstr("step 6/6"));
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(run_program("info " + folder_ + "/a").code, 0);
  EXPECT_EQ(run_program(arguments("sft", "a", "--set resume=never")).code, 2);
}

TEST_F(Runs, TimingsAddUpAndCountAllTokens) {
  const ProgramOutput said = run_program(arguments(
      "grpo", "a",
      "--set reward=[{rule:\\ length,\\ max:\\ 60}] --set grpo.group_size=4 --set grpo.beta=0.01 "
      "--set rollout.max_new_tokens=12 --set train.peak_tflops=0.5"));
  ASSERT_EQ(said.code, 0) << said.err;
  const auto metrics = json_lines(text("a/metrics.jsonl")),
             all_lines = json_lines(text("a/timings.jsonl"));
  ASSERT_EQ(all_lines.size(), 8u);
  EXPECT_EQ(all_lines.back().find("ended")->string(), "complete");
  const std::vector<Json> lines(all_lines.begin(), all_lines.end() - 1);
  EXPECT_EQ(lines[0].find("peak_tflops")->number(), 0.5);
  EXPECT_EQ(lines[0].find("peak")->string(), "train.peak_tflops");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    double parts = 0, all = 0;
    for (const auto& [key, value] : lines[i].object()) {
      if (key == "timing/all") all = value.number();
      if (key.starts_with("timing/") && key != "timing/all" && !key.starts_with("timing/non_"))
        parts += value.number();
    }
    EXPECT_NEAR(parts, all, 0.001 * all);
    for (const char* part : {"rollout", "weights", "reference", "reward", "advantage", "update"})
      EXPECT_GT(lines[i].find(cat("timing/", part))->number(), 0) << part;
    EXPECT_NEAR(lines[i].find("perf/tokens_per_second")->number() * all,
                metrics[i - 1].find("tokens")->number(), 1e-6);
    EXPECT_NEAR(lines[i].find("perf/samples_per_second")->number() * all, 16, 1e-6);
    EXPECT_GT(lines[i].find("perf/mfu")->number(), 0);
    EXPECT_GT(lines[i].find("perf/hfu")->number(), lines[i].find("perf/mfu")->number());
    EXPECT_NEAR(lines[i].find("epoch")->number(), static_cast<double>(i) / 6, 1e-12);
  }
  EXPECT_EQ(said.err.find("peak resident memory"), said.err.rfind("peak resident memory"));
  EXPECT_THAT(said.err, HasSubstr("MiB of the process (policy, rank 0)"));
  EXPECT_THAT(text("a/samples.txt"), HasSubstr("[answer] the"));
}

// Two lanes in one process, whatever the threads of each.
TEST_F(Runs, RolloutsWithThreadsOfTheirOwnChangeNoByte) {
  const std::string grpo =
      "--set reward=[{rule:\\ length,\\ max:\\ 60}] --set grpo.group_size=4 --set grpo.beta=0.01 "
      "--set rollout.max_new_tokens=12 ";
  ASSERT_EQ(run_program(arguments("grpo", "shared", grpo)).code, 0);
  for (const char* threads : {"1", "2"}) {
    const std::string own = cat("own", threads);
    const ProgramOutput said =
        run_program(arguments("grpo", own, cat(grpo, "--set rollout.threads=", threads)));
    ASSERT_EQ(said.code, 0) << said.err;
    expect_equal_ends("shared", own);
  }
}

TEST_F(Runs, RecordAllSamplesWithTheVersionsOfTheirTokens) {
  const ProgramOutput said = run_program(
      arguments("grpo", "a",
                "--set reward=[{rule:\\ length,\\ max:\\ 60}] --set grpo.group_size=4 --set "
                "grpo.epochs=2 --set rollout.max_new_tokens=12 --set rollout.record=all"));
  ASSERT_EQ(said.code, 0) << said.err;
  const auto lines = json_lines(text("a/samples.jsonl"));
  ASSERT_EQ(lines.size(), 3u * 4 * 4) << "three batches of four prompts, two updates each";
  for (std::size_t n = 0; n < lines.size(); ++n) {
    const auto ids = lines[n].find("ids")->array();
    EXPECT_EQ(lines[n].find("logprobs")->array().size(), ids.size());
    EXPECT_EQ(lines[n].find("versions")->dump(), cat("[[", n / 16, ",", ids.size(), "]]"))
        << "the version counts batches";
  }
}

class EveryAlgorithm : public Runs, public testing::WithParamInterface<const char*> {
 protected:
  std::string more() const {
    return GetParam() == std::string("grpo") ? "--set reward=[{rule:\\ length,\\ max:\\ 60}] --set "
                                               "grpo.group_size=4 --set rollout.max_new_tokens=12"
                                             : "";
  }
};

TEST_P(EveryAlgorithm, ContinuesWithTheSameBitsAfterAPause) {
  ASSERT_EQ(
      run_program(arguments(GetParam(), "whole", more() + " --set train.schedule=constant")).code,
      0);
  const std::string constant = more() + " --set train.schedule=constant";
  const ProgramOutput half =
      run_program(arguments(GetParam(), "parts", constant + " --set train.steps=3"));
  ASSERT_EQ(half.code, 0) << half.err;
  const ProgramOutput rest = run_program(arguments(GetParam(), "parts", constant));
  ASSERT_EQ(rest.code, 0) << rest.err;
  expect_equal_ends("whole", "parts");
}

TEST_P(EveryAlgorithm, ContinuesWithTheSameBitsAfterAnyKill) {
  ASSERT_EQ(run_program(arguments(GetParam(), "whole", more())).code, 0);
  const std::string command = cat("'" TROUPE_PROGRAM "' ", arguments(GetParam(), "killed", more()),
                                  " >", folder_, "/log 2>&1");
  int kills = 0;
  for (double seconds = 0.02; kills < 40; seconds += 0.03, ++kills) {
    if (std::system(cat("timeout -s KILL ", to_text(seconds, 2), " ", command).c_str()) == 0) break;
  }
  ASSERT_EQ(std::system(command.c_str()), 0) << text("log");
  expect_equal_ends("whole", "killed");
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryAlgorithm, testing::Values("sft", "dpo", "grpo"),
                         [](const auto& name) { return std::string(name.param); });

TEST_F(Runs, AnInterruptSavesACheckpointAndExits) {
  const std::string endless =
      arguments("sft", "a", "--set train.steps=100000 --set train.save_every=0");
  // Waits for the first step in metrics.jsonl, then sends SIGINT.
  const std::string script =
      cat("'" TROUPE_PROGRAM "' ", endless, " 2>", folder_, "/err & pid=$!; until [ -s ", folder_,
          "/a/metrics.jsonl ] || ! kill -0 $pid; do :; done; kill -INT $pid; wait $pid");
  const int status = run_script(script);
  EXPECT_EQ(WEXITSTATUS(status), 130) << text("err");
  const auto lines = json_lines(text("a/metrics.jsonl"));
  const std::string last = std::filesystem::read_symlink(folder_ + "/a/latest").string();
  EXPECT_EQ(last, cat("checkpoint-", lines.size()));
}

TEST_F(Runs, ASignalWhileDataIsReadEndsTheRun) {
  const std::string many = folder_ + "/many.jsonl";
  // Waits until the program has the file, which takes it seconds to read, then sends SIGTERM.
  const std::string script = cat(
      "yes '{\"prompt\":\"Tell a story.\",\"completion\":\" Once upon a time there was a cat.\"}' "
      "| "
      "head -n 500000 >",
      many, "; '" TROUPE_PROGRAM "' ", arguments("sft", "a", cat("--set data.path=", many)), " 2>",
      folder_,
      "/err & pid=$!; until grep -q many.jsonl /proc/$pid/maps || ls -l /proc/$pid/fd | grep -q "
      "many.jsonl || ! kill -0 $pid; do :; done; kill -TERM $pid; wait $pid");
  const int status = run_script(script);
  EXPECT_EQ(WEXITSTATUS(status), 130) << text("err");
  EXPECT_THAT(text("err"), HasSubstr("nterrupted before the first step"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a/latest"));
}

TEST_F(Runs, AnotherProcessMayNotUseTheSameOutput) {
  const std::string lock = folder_ + "/a";
  std::filesystem::create_directories(lock);
  const std::string script = cat("exec 9>", lock, "/.lock; flock 9; '" TROUPE_PROGRAM "' ",
                                 arguments("sft", "a"), " 2>", folder_, "/err 9>&-");
  const int status = run_script(script);
  EXPECT_EQ(WEXITSTATUS(status), 2) << text("err");
}

TEST_F(Runs, ABadRowIsNamed) {
  ASSERT_TRUE(
      write_file_durably(rows_, "{\"prompt\":\"a\",\"completion\":\"b\"}\n{\"prompt\":\"a\"}\n"));
  const ProgramOutput said = run_program(arguments("sft", "a"));
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.err, HasSubstr("rows.jsonl:2"));
}

}  // namespace
}  // namespace troupe::launch::train_test

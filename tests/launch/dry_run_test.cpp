// `troupe train --dry-run`: one step of everything, of which nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/commands/dry_run.h"
#include "launch/recipes/resolve.h"
#include "tests/launch/program.h"

namespace troupe::launch::dry_run_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class DryRun : public testing::Test {
 protected:
  DryRun() {
    std::string rows;
    for (int i = 0; i < 16; ++i)
      rows += cat("{\"prompt\":\"Tell a story, number ", i, ".\",\"completion\":\" There were ", i,
                  " cats.\",\"chosen\":\" Good.\",\"rejected\":\" No.\",\"answer\":\"the\"}\n");
    EXPECT_TRUE(write_file_durably(folder_ + "/rows.jsonl", rows));
  }
  std::string command(const std::string& algorithm, const std::string& more = "") const {
    return cat(
        "train --dry-run --algorithm ", algorithm, " --set model=", data("models/stories260k/hf"),
        " --set data.path=", folder_, "/rows.jsonl --set output=", folder_,
        "/a/b --set train.batch_size=4 --set train.max_length=64 --set train.threads=1 ", more);
  }
  // The names of what is in the folder, hidden files included.
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    return names;
  }
  std::string folder_ = scratch_folder();
};

TEST_F(DryRun, DoesOneStepOfAMethodThatTrainsOnRows) {
  const ProgramOutput said = run_program(
      command("dpo", "--set train.steps=50 --set train.warmup_steps=10 --set data.split=0.25"));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("Dry run of dpo"), ContainsRegex("train_step +1 call, "),
                              ContainsRegex("logprobs +"), ContainsRegex("save +1 call, "),
                              ContainsRegex("checkpoint +3.0 MiB"), ContainsRegex("peak memory +"),
                              ContainsRegex("time per step +about "),
                              ContainsRegex("time of the run +about .* for 50 steps")));
  EXPECT_THAT(left(), testing::ElementsAre("rows.jsonl"));
}

TEST_F(DryRun, SamplesAndRewardsOneBatch) {
  const ProgramOutput said = run_program(command(
      "grpo",
      "--set reward=exact_match --set rollout.max_new_tokens=4 --set grpo.group_size=2 --set "
      "grpo.minibatches=2 --set train.save_every=1"));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out,
              AllOf(ContainsRegex("generate +"), ContainsRegex("compute_rewards +"),
                    ContainsRegex("train_step +2 calls, "), ContainsRegex("save +1 call, ")));
  EXPECT_THAT(left(), testing::ElementsAre("rows.jsonl"));
}

TEST_F(DryRun, FailsAsTheRunWould) {
  EXPECT_TRUE(write_file_durably(folder_ + "/rows.jsonl", "{\"prompt\":\"q\"}\n"));
  const ProgramOutput said =
      run_program(command("grpo", "--set reward=exact_match --set rollout.max_new_tokens=4"));
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.err,
              HasSubstr("rows.jsonl:1: the reward rule exact_match needs the row's answer"));
  EXPECT_THAT(left(), testing::ElementsAre("rows.jsonl"));
}

TEST_F(DryRun, LeavesNothingWhenItIsInterruptedOrKilled) {
  const std::string run = cat("'" TROUPE_PROGRAM "' ", command("sft", "--set train.batch_size=16"),
                              " >", folder_, "/log 2>&1");
  for (const char* how : {"INT", "TERM", "HUP"})
    for (const char* seconds : {"0.01", "0.05", "0.2"})
      (void)!std::system(cat("timeout -s ", how, " ", seconds, " ", run).c_str());
  // The step itself is killed; the process that waits for it cleans up.
  const std::string script =
      cat(run,
          " & for i in $(seq 2000); do child=$(cat /proc/$!/task/$!/children 2>/dev/null); "
          "[ -n \"$child\" ] && kill -9 $child && break; done; wait $!");
  EXPECT_TRUE(write_file_durably(folder_ + "/script", script));
  (void)!std::system(cat("bash ", folder_, "/script").c_str());
  EXPECT_THAT(left(), testing::UnorderedElementsAre("rows.jsonl", "log", "script"));
}

TEST_F(DryRun, IsRefusedByNameUnderLaunch) {
  const ProgramOutput said = run_program("launch --cluster x.yaml -- " + command("sft"));
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.err, HasSubstr("troupe train --dry-run"));
}

TEST(OneStep, IsARolloutStepWithoutWarmupInAnotherFolder) {
  const auto run = value_or_throw(
      recipes::resolve({.algorithm = "ppo",
                        .sets = {"model=M", "output=O", "data.path=D", "reward=exact_match",
                                 "ppo.epochs=3", "ppo.minibatches=2", "train.warmup_steps=5",
                                 "critic.warmup_rounds=2", "resume=never", "train.steps=60"},
                        .check_files = false}));
  const config::RunConfig one = commands::one_step_of(run.config, "folder");
  EXPECT_EQ(one.output, "folder");
  EXPECT_EQ(one.resume, "auto");
  EXPECT_EQ(one.train.steps, 6);
  EXPECT_EQ(one.train.warmup_steps, 0);
  EXPECT_EQ(one.critic.warmup_rounds, 0);
}

}  // namespace
}  // namespace troupe::launch::dry_run_test

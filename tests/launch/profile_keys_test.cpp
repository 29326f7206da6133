// The keys and options of profiling, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/recipes/resolve.h"
#include "launch/recipes/validate_profile.h"
#include "tests/launch/program.h"

namespace troupe::launch::profile_keys_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<recipes::Resolved> with(std::vector<std::string> sets) {
  sets.insert(sets.begin(), {"model=M", "data.path=D", "output=O"});
  return recipes::resolve(
      {.algorithm = "sft", .file = "", .sets = std::move(sets), .check_files = false});
}

std::string refusal(std::vector<std::string> sets) {
  sets.push_back("profile.enabled=true");
  const auto got = with(std::move(sets));
  return got ? "accepted" : got.error().what;
}

TEST(ProfileKeys, WhatMakesNoSenseIsRefusedInWords) {
  EXPECT_THAT(refusal({"profile.step_start=5", "profile.step_end=5"}),
              HasSubstr("must be above profile.step_start = 5"));
  EXPECT_THAT(refusal({"profile.step_start=0"}),
              HasSubstr("profile.step_start = 0 (--set): must be at least 1"));
  EXPECT_THAT(refusal({"profile.level=level3"}),
              HasSubstr("must be one of level0, level1, level2"));
  EXPECT_THAT(refusal({"profile.ranks=[]"}), HasSubstr("name at least one rank"));
  EXPECT_THAT(refusal({"profile.ranks=0.5"}),
              HasSubstr("a whole number is expected, found \"0.5\""));
  EXPECT_THAT(refusal({"profile.ranks=[-1, 0]"}), HasSubstr("stands alone"));
  EXPECT_EQ(refusal({"profile.step_start=5", "profile.step_end=6", "profile.ranks=[0, 3]",
                     "profile.level=level2"}),
            "accepted");
}

TEST(ProfileKeys, AKeyWithoutTheSwitchAndAWindowBehindTheRunAreWarnedOf) {
  const auto unused = with({"profile.level=level1"});
  ASSERT_TRUE(unused);
  EXPECT_THAT(unused->warnings, ElementsAre(HasSubstr("set profile.enabled (--profile)")));
  const auto late = with({"profile.enabled=true", "train.steps=3"});
  ASSERT_TRUE(late);
  EXPECT_THAT(late->warnings, ElementsAre(HasSubstr("nothing will be profiled")));
}

TEST(ProfileKeys, ARankThatTheGroupDoesNotHaveIsRefused) {
  config::RunConfig config;
  config.profile = {.enabled = true, .ranks = {2}};
  const auto refused = recipes::check_profile_ranks(config, 2);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what,
              HasSubstr("there is no rank 2; the largest group has ranks 0 to 1"));
  EXPECT_TRUE(recipes::check_profile_ranks(config, 3));
  config.profile.ranks = {-1};
  EXPECT_TRUE(recipes::check_profile_ranks(config, 1));
}

TEST(ProfileOptions, AreTheKeysOfTheSection) {
  const ProgramOutput said =
      run_program("explain --algorithm sft --set model='" + data("models/stories260k/hf") +
                  "' --set data.path='" + data("datasets/math/gsm8k_train_head.jsonl") +
                  "' --set output=O --profile --profile-step-start 2 --profile-step-end 4 "
                  "--profile-ranks -1 --profile-level level1 --profile-with-cpu "
                  "--profile-with-stack --profile-with-memory --profile-record-shapes "
                  "--profile-save-path here");
  ASSERT_EQ(said.code, 0) << said.err;
  for (const char* value :
       {"profile.enabled               true", "profile.step_start            2",
        "profile.step_end              4", "profile.ranks                 [-1]",
        "profile.level                 level1", "profile.with_cpu              true",
        "profile.with_stack            true", "profile.with_memory           true",
        "profile.record_shapes         true", "profile.save_path             here"})
    EXPECT_THAT(said.out, HasSubstr(value));
  const ProgramOutput refused = run_program(
      "explain --algorithm sft --set output=O --set train.steps=5 --profile --profile-step-start 4 "
      "--profile-step-end 3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("profile.step_end = 3 (--set): must be above profile.step_start = 4"));
}

}  // namespace
}  // namespace troupe::launch::profile_keys_test

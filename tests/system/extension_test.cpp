// A run that ended within a rollout step and is extended: the bytes are those of the longer run.
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/disturbed_runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

class Extended : public DisturbedRuns, public testing::WithParamInterface<const char*> {
 protected:
  /// A rollout step has four training steps.
  std::string run_to(const std::string& output, int steps, const std::string& more = "") const {
    const std::string passes = GetParam() == std::string("grpo") ? "--set grpo.epochs=2 " : "";
    return arguments(GetParam(), output,
                     cat(passes, "--set train.schedule=constant --set train.save_every=0 ",
                         "--set train.steps=", steps, ' ', more));
  }
};

TEST_P(Extended, CompletesItsRolloutStep) {
  run(run_to("whole", 12));
  run(run_to("part", 9));
  EXPECT_EQ(std::filesystem::read_symlink(path("part/latest")), "checkpoint-9");
  EXPECT_THAT(run(run_to("part", 9)), HasSubstr("already complete"));
  EXPECT_THAT(
      run(run_to("part", 12)),
      HasSubstr("checkpoint-9 lies within a rollout step, which is repeated from its start"));
  expect_same_bytes("whole", "part");
  EXPECT_EQ(value_or_throw(read_file(path("whole/samples.jsonl"))),
            value_or_throw(read_file(path("part/samples.jsonl"))));
}

TEST_P(Extended, CompletesItsFirstRolloutStepFromTheStart) {
  run(run_to("whole", 5));
  run(run_to("part", 3));
  EXPECT_THAT(run(run_to("part", 5)), HasSubstr("the run starts over"));
  expect_same_bytes("whole", "part");
}

TEST_P(Extended, StepByStepWithinOneRolloutStep) {
  run(run_to("whole", 12));
  for (const int steps : {5, 6, 7, 10, 12}) run(run_to("part", steps));
  expect_same_bytes("whole", "part");
}

// The start of the rollout step is in another directory: it is saved in the new one first.
TEST_P(Extended, AlsoWhenTheRunBeganElsewhere) {
  run(run_to("whole", 12));
  run(run_to("first", 4));
  run(run_to("part", 6, cat("--set resume='", path("first/checkpoint-4"), "'")));
  run(run_to("part", 12));
  for (const char* file : {"/latest/model.safetensors", "/latest/training/state.json"})
    EXPECT_EQ(value_or_throw(read_file(path(cat("whole", file)))),
              value_or_throw(read_file(path(cat("part", file)))));
}

TEST_P(Extended, SaysThatStepsAreDroppedWithoutTheStartOfTheRolloutStep) {
  run(run_to("part", 9));
  std::filesystem::remove_all(path("part/checkpoint-8"));
  EXPECT_THAT(run(run_to("part", 12)),
              HasSubstr("the steps that follow differ from those of a longer run"));
  EXPECT_EQ(steps_written("part"), 12u);
}

INSTANTIATE_TEST_SUITE_P(Methods, Extended, testing::Values("grpo", "ppo"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace troupe::test

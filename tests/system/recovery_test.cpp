// Recovery of a run: after an interrupt, with damaged files, with more steps, and with a second
// run.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

class Recovery : public SystemRuns {
 protected:
  std::string sft(const std::string& output, int steps, const std::string& more = "") const {
    return arguments("sft", output,
                     cat("--set train.schedule=constant --set train.keep_last=0 --set train.steps=",
                         steps, ' ', more));
  }
  void flip_a_byte(const std::string& file, double where) const {
    std::string bytes = value_or_throw(read_file(path(file)));
    bytes[static_cast<std::size_t>(where * static_cast<double>(bytes.size() - 1))] ^= 0x10;
    value_or_throw(write_file_durably(path(file), bytes));
  }
};

class Interrupted : public Recovery, public testing::WithParamInterface<const char*> {};

TEST_P(Interrupted, SavesLeavesWith130AndResumesToTheSameBytes) {
  const auto arguments_of = [&](const char* output, std::size_t steps) {
    return arguments(
        GetParam(), output,
        cat("--set train.schedule=constant --set train.save_every=0 --set train.steps=", steps));
  };
  Child child(command(arguments_of("stopped", 100000)), log());
  ASSERT_TRUE(child.until([&] { return steps_written("stopped") >= 3; }));
  child.signal(SIGINT);
  ASSERT_EQ(child.wait(), 130) << read_file(log()).value_or("");
  const std::size_t done = steps_written("stopped");
  EXPECT_EQ(std::filesystem::read_symlink(path("stopped/latest")), cat("checkpoint-", done));
  run(arguments_of("stopped", done + 6));
  run(arguments_of("whole", done + 6));
  expect_same_bytes("whole", "stopped");
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Interrupted, testing::Values("sft", "dpo", "grpo", "ppo"),
                         [](const auto& each) { return each.param; });

TEST_F(Recovery, TwoSignalsAtOnceCountAsOne) {
  Child child(command(sft("a", 100000, "--set train.save_every=0")), log());
  ASSERT_TRUE(child.until([&] { return steps_written("a") >= 1; }));
  child.signal(SIGINT);
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(), 130);
  EXPECT_EQ(std::filesystem::read_symlink(path("a/latest")),
            cat("checkpoint-", steps_written("a")));
}

TEST_F(Recovery, ASecondSignalASecondLaterQuitsImmediately) {
  const auto said = [&](const std::string& words) {
    return read_file(log()).value_or("").find(words) != std::string::npos;
  };
  Child child(command(sft("a", 3, "--set train.batch_size=100000 --set data.stream=true")),
              log());  // a step takes minutes
  // Before the first step a signal ends the run: the step begins when the journal is there.
  ASSERT_TRUE(child.until([&] { return std::filesystem::exists(path("a/timings.jsonl")); }));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  child.signal(SIGINT);
  ASSERT_TRUE(child.until([&] { return said("Press Ctrl-C again to quit immediately"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(), 130);
  EXPECT_EQ(steps_written("a"), 0u);
  EXPECT_FALSE(std::filesystem::exists(path("a/latest")));
}

// Arrow files stay mapped while they are read. A pass that ends between the truncation and the next
// access compares the file first.
TEST_F(Recovery, AMappedFileThatIsTruncatedIsNamed) {
  const std::string rows = path("rows.arrow");
  std::filesystem::copy_file(launch::data("formats/arrow/gsm8k_train_head.arrow"), rows);
  Child child(command(sft("a", 100000,
                          cat("--set data.path='", rows,
                              "' --set data.stream=true --set data.shuffle_buffer=4"))),
              log());
  if (!child.until([&] { return steps_written("a") >= 2; })) {
    ASSERT_EQ(child.wait(), 6) << read_file(log()).value_or("");
    GTEST_SKIP() << "this build is without Arrow";
  }
  std::filesystem::resize_file(rows, 0);
  const int code = child.wait();
  const std::string text = read_file(log()).value_or("");
  if (code == 3)
    EXPECT_THAT(text, HasSubstr(cat(rows, " was replaced while the run reads it: it had ")));
  else
    EXPECT_THAT(text, HasSubstr(cat("troupe: ", rows,
                                    ": expected the bytes that were there when it was opened")));
  EXPECT_TRUE(code == 3 || code == 7) << code;
}

class Damaged : public Recovery, public testing::WithParamInterface<const char*> {};

TEST_P(Damaged, TheLatestCheckpointIsNamedAndTheOneBeforeIsUsed) {
  run(sft("whole", 8, "--set train.save_every=2"));
  run(sft("hurt", 6, "--set train.save_every=2"));
  flip_a_byte(cat("hurt/checkpoint-6/", GetParam()), 0.7);
  const std::string said = run(sft("hurt", 8, "--set train.save_every=2"));
  EXPECT_THAT(said, HasSubstr(cat("checkpoint-6/", GetParam())));
  EXPECT_THAT(said, HasSubstr("checkpoint-4 instead"));
  expect_same_bytes("whole", "hurt");
}

TEST_P(Damaged, ACheckpointThatIsRequestedByNameIsRefused) {
  run(sft("hurt", 4, "--set train.save_every=2"));
  flip_a_byte(cat("hurt/checkpoint-4/", GetParam()), 0.7);
  const launch::ProgramOutput said =
      launch::run_program(sft("other", 6, cat("--set resume='", path("hurt/checkpoint-4"), "'")));
  EXPECT_EQ(said.code, 5) << said.err;
  EXPECT_THAT(said.err, HasSubstr(GetParam()));
  EXPECT_EQ(steps_written("other"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Files, Damaged,
                         testing::Values("model.safetensors", "training/optimizer.safetensors",
                                         "training/state.json"),
                         [](const auto& each) {
                           return each.param[0] == 'm'   ? "Weights"
                                  : each.param[9] == 'o' ? "Moments"
                                                         : "State";
                         });

TEST_F(Recovery, ARunIsRejectedIfEveryCheckpointIsDamaged) {
  run(sft("hurt", 4, "--set train.save_every=2"));
  for (const char* file :
       {"hurt/checkpoint-2/model.safetensors", "hurt/checkpoint-4/model.safetensors"})
    flip_a_byte(file, 0.5);
  const launch::ProgramOutput said = launch::run_program(sft("hurt", 6));
  EXPECT_EQ(said.code, 5) << said.err;
  EXPECT_EQ(steps_written("hurt"), 4u);
}

TEST_F(Recovery, MoreStepsResumeWhereTheRunEnded) {
  run(sft("whole", 9, "--set train.save_every=0"));
  run(sft("parts", 4, "--set train.save_every=0"));
  EXPECT_THAT(run(sft("parts", 4, "--set train.save_every=0")),
              HasSubstr("already complete (4 steps)"));
  run(sft("parts", 9, "--set train.save_every=0"));
  expect_same_bytes("whole", "parts");
}

TEST_F(Recovery, ASecondRunWithTheSameOutputIsRejected) {
  Child first(command(sft("a", 100000, "--set train.save_every=0")), log());
  ASSERT_TRUE(first.until([&] { return steps_written("a") >= 1; }));
  const launch::ProgramOutput second = launch::run_program(sft("a", 5));
  EXPECT_EQ(second.code, 2) << second.err;
  EXPECT_THAT(second.err, HasSubstr(path("a")));
  EXPECT_TRUE(first.until([&] { return steps_written("a") >= 2; })) << "the first must not mind";
}

}  // namespace
}  // namespace troupe::test

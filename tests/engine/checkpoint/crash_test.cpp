// Killed or failing at any moment of the writing of a checkpoint, which training waits for or which
// it overlaps: the checkpoint before or the new one is there, whole, and the next write works.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "tests/engine/checkpoint/run_fixture.h"

namespace troupe::engine::checkpoint {
namespace {

/// Parameter: whether every value is replaced as soon as it is written.
struct Crash : RunTest, testing::WithParamInterface<bool> {
  Result<std::string> write(std::int64_t step, const WriteOptions& options = {}) {
    return GetParam() ? write_overlapped(step, options) : RunTest::write(step, options);
  }
  // Steps 1 and 2 are there; step 3 is being written, and step 1 goes.
  void prepare() {
    std::filesystem::remove_all(out.path());
    ASSERT_TRUE(write(1));
    ASSERT_TRUE(write(2));
  }
  std::vector<std::string> steps_of_the_protocol() {
    std::vector<std::string> seen;
    prepare();
    EXPECT_TRUE(write(3, {.keep_last = 2, .before = [&](std::string_view name) -> Result<> {
                            seen.emplace_back(name);
                            return Result<>();
                          }}));
    return seen;
  }
  // Runs `act` in a process of its own; its wait status.
  template <class Act>
  int in_a_child(Act act) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(act());
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
  void expect_old_or_new(const std::string& when) {
    const auto found = find_latest(out.path());
    ASSERT_TRUE(found) << when << ": " << found.error().what;
    ASSERT_TRUE(*found) << when;
    EXPECT_TRUE((*found)->step == 2 || (*found)->step == 3) << when;
    EXPECT_TRUE((*found)->warnings.empty()) << when;
    EXPECT_TRUE(holds((*found)->path, (*found)->step)) << when;
  }
  void expect_the_next_write_works(const std::string& when) {
    ASSERT_TRUE(write(3, {.keep_last = 2})) << when;
    EXPECT_EQ(find_latest(out.path()).value()->step, 3) << when;
    EXPECT_TRUE(holds(out / "checkpoint-3", 3)) << when;
    EXPECT_THAT(names(), ::testing::ElementsAre(".lock", "checkpoint-2", "checkpoint-3", "latest"))
        << when;
  }
};

TEST_P(Crash, KilledBeforeAnyStep) {
  const auto steps = steps_of_the_protocol();
  ASSERT_GT(steps.size(), 14u);
  EXPECT_THAT(steps, ::testing::IsSupersetOf({"write values", "sync values", "publish"}));
  for (std::size_t kill = 0; kill < steps.size(); ++kill) {
    prepare();
    const int status = in_a_child([&] {
      std::size_t now = 0;
      (void)write(3, {.keep_last = 2, .before = [&](std::string_view) -> Result<> {
                        if (now++ == kill) ::raise(SIGKILL);
                        return {};
                      }});
      return 0;
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << steps[kill];
    expect_old_or_new(steps[kill]);
    expect_the_next_write_works(steps[kill]);
  }
}

// Step 1 was the best; step 3 is, and step 1 goes.
TEST_P(Crash, KilledBeforeAnyStepTheBestOneIsThere) {
  const auto prepare_best = [&] {
    std::filesystem::remove_all(out.path());
    for (std::int64_t step : {1, 2}) ASSERT_TRUE(write(step, {.keep_last = 2, .best_step = 1}));
  };
  std::vector<std::string> steps;
  prepare_best();
  ASSERT_TRUE(
      write(3, {.keep_last = 2, .best_step = 3, .before = [&](std::string_view name) -> Result<> {
                  steps.emplace_back(name);
                  return {};
                }}));
  EXPECT_THAT(steps, ::testing::Contains("swing best"));
  for (std::size_t kill = 0; kill < steps.size(); ++kill) {
    prepare_best();
    in_a_child([&] {
      std::size_t now = 0;
      (void)write(3, {.keep_last = 2, .best_step = 3, .before = [&](std::string_view) -> Result<> {
                        if (now++ == kill) ::raise(SIGKILL);
                        return {};
                      }});
      return 0;
    });
    expect_old_or_new(steps[kill]);
    const bool done = find_latest(out.path()).value()->step == 3;
    const std::int64_t best = done ? 3 : 1;  // of the checkpoint that the run resumes from
    EXPECT_TRUE(holds(out / cat("checkpoint-", best), best)) << steps[kill];
    const auto named = std::filesystem::read_symlink(out / "best").string();
    EXPECT_TRUE(verify_checkpoint(out / named)) << steps[kill] << ": " << named;
    ASSERT_TRUE(write(3, {.keep_last = 2, .best_step = 3})) << steps[kill];
    EXPECT_EQ(std::filesystem::read_symlink(out / "best").string(), "checkpoint-3");
    EXPECT_THAT(names(),
                ::testing::ElementsAre(".lock", "best", "checkpoint-2", "checkpoint-3", "latest"))
        << steps[kill];
  }
}

TEST_P(Crash, KilledInTheMiddleOfAFile) {
  prepare();
  const auto largest = std::filesystem::file_size(out / "checkpoint-2/training/manifest.json");
  for (rlim_t limit = 0; limit < largest; limit += 61) {
    prepare();
    const int status = in_a_child([&] {
      const rlimit none{0, 0}, some{limit, limit};
      ::setrlimit(RLIMIT_CORE, &none);
      ::setrlimit(RLIMIT_FSIZE,
                  &some);  // the kernel ends the process at this byte of any file (SIGXFSZ)
      (void)write(3, {.keep_last = 2});
      return 0;
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << limit;
    expect_old_or_new(cat("at byte ", limit));
    EXPECT_EQ(find_latest(out.path()).value()->step, 2);
    expect_the_next_write_works(cat("at byte ", limit));
  }
}

TEST_P(Crash, AFullDiskIsAnErrorThatLeavesNothingBehind) {
  prepare();
  const auto largest = std::filesystem::file_size(out / "checkpoint-2/training/manifest.json");
  for (rlim_t limit = 16; limit < largest; limit += 61) {
    const int status = in_a_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);  // writes fail with EFBIG instead
      const rlimit some{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &some);
      const auto written = write(3);
      return written || written.error().code != Errc::io ||
                     written.error().what.find("cannot write") == std::string::npos ||
                     written.error().what.find("checkpoint-3") == std::string::npos
                 ? 1
                 : 0;
    });
    EXPECT_EQ(status, 0) << limit;
    EXPECT_THAT(names(), ::testing::ElementsAre(".lock", "checkpoint-1", "checkpoint-2", "latest"))
        << limit;
    EXPECT_EQ(find_latest(out.path()).value()->step, 2) << limit;
  }
}

TEST_P(Crash, AnErrorAtAnyStepIsReportedAndLeavesNoTemporary) {
  const auto steps = steps_of_the_protocol();
  for (std::size_t bad = 0; bad < steps.size(); ++bad) {
    prepare();
    std::size_t now = 0;
    const auto written =
        write(3, {.keep_last = 2, .before = [&](std::string_view name) -> Result<> {
                    if (now++ == bad) return fail(Errc::io, cat("no luck: ", name));
                    return {};
                  }});
    ASSERT_FALSE(written) << steps[bad];
    EXPECT_EQ(written.error().what, "no luck: " + steps[bad]);
    expect_old_or_new(steps[bad]);
    if (steps[bad] != "remove") {  // a checkpoint that was set aside waits for the next sweep
      for (const auto& name : names())
        EXPECT_FALSE(name.starts_with(".tmp")) << steps[bad] << ": " << name;
    }
    expect_the_next_write_works(steps[bad]);
  }
}

INSTANTIATE_TEST_SUITE_P(Writes, Crash, testing::Bool(),
                         [](const auto& each) { return each.param ? "Overlapped" : "Waiting"; });

}  // namespace
}  // namespace troupe::engine::checkpoint

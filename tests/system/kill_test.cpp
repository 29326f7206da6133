// SIGKILL at random times and at given operations on files, then the same command again: the bytes
// are those of an uninterrupted run, and nothing is left over.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "tests/support/sanitized.h"
#include "tests/system/child.h"
#include "tests/system/disturbed_runs.h"
#include "tests/system/recorded_files.h"

namespace troupe::test {
namespace {

class Killed : public DisturbedRuns, public testing::WithParamInterface<const char*> {
 protected:
  std::string run_of(const std::string& output) const {
    return DisturbedRuns::run_of(GetParam(), output);
  }
  /// A checkpoint is being written, or was when the process was killed.
  std::string half_written(const std::string& output) const {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(path(output), gone))
      if (entry.path().filename().string().starts_with(".tmp-")) return entry.path().string();
    return "";
  }
  /// Kills a run after up to three more steps and up to 20 ms: during loading, a step or a
  /// checkpoint. False if it ends before.
  bool killed(std::uint64_t life) const {
    Child child(command(run_of("killed")), log());
    const std::size_t steps = steps_written("killed") + uniform_below(4, 8, 0, life);
    child.until([&] { return steps_written("killed") >= steps; });
    const auto moment = std::chrono::steady_clock::now() +
                        std::chrono::microseconds(uniform_below(20000, 8, 1, life));
    child.until([&] { return std::chrono::steady_clock::now() >= moment; });
    child.signal(SIGKILL);
    const int code = child.wait();
    EXPECT_TRUE(code == 0 || code == -SIGKILL) << code;
    return code == -SIGKILL;
  }
  void finish_killed_run() {
    run(run_of("killed"));
    expect_undisturbed("whole", "killed");
    std::filesystem::remove_all(path("killed"));
  }
};

TEST_P(Killed, AtRandomMomentsItEndsWithTheSameBytes) {
  run(run_of("whole"));
  const std::size_t wanted = wanted_count("TROUPE_KILLS", 4);
  std::size_t kills = 0;
  for (std::uint64_t life = 0; kills < wanted && life < 20 * wanted && !HasFailure(); ++life) {
    if (killed(life))
      ++kills;
    else
      finish_killed_run();
  }
  EXPECT_EQ(kills, wanted);
  finish_killed_run();
}

TEST_P(Killed, WhileACheckpointIsWrittenItEndsWithTheSameBytes) {
  run(run_of("whole"));
  int halves = 0;
  for (int life = 0; life < 6 && halves < 2; ++life) {
    Child child(command(run_of("killed")), log());
    std::string earlier = half_written("killed");  // the next start sweeps it away first
    child.until([&] {
      const std::string now = half_written("killed");
      return !now.empty() && now != earlier;
    });
    child.signal(SIGKILL);
    child.wait();
    halves += half_written("killed").empty() ? 0 : 1;
  }
  EXPECT_GE(halves, 1) << "no kill met a checkpoint";
  finish_killed_run();
}

TEST_P(Killed, BeforeAnyOperationOnAFileItEndsWithTheSameBytes) {
  if (sanitized) GTEST_SKIP() << "the runtime of a sanitizer must be loaded first";
  const std::size_t operations = record(GetParam(), "whole").size(),
                    points = wanted_count("TROUPE_CRASH_POINTS", 2);
  for (std::size_t point = 0; point < points && !HasFailure(); ++point) {
    const std::size_t last = operations * point / points,
                      at = 1 + last + uniform_below(operations / points, 8, 2, point);
    SCOPED_TRACE(cat("killed before operation ", at, " of ", operations));
    Child child(cat(recorder(cat("FILE_RECORDER_KILL=", at)), command(run_of("killed"))), log());
    EXPECT_EQ(child.wait(), -SIGKILL);
    finish_killed_run();
  }
}

// The last step's checkpoint is complete, so the next start has no step to do.
TEST_P(Killed, AfterItsLastCheckpointItLeavesNothingBehind) {
  if (sanitized) GTEST_SKIP() << "the runtime of a sanitizer must be loaded first";
  const auto operations = record(GetParam(), "whole");
  std::size_t at = operations.size();  // the first removal of the last step's prune
  while (at > 0 && !(operations[at - 1].kind == 'r' &&
                     operations[at - 1].other.find(".tmp-checkpoint-") != std::string::npos))
    --at;
  ASSERT_GT(at, 0u);
  for (const std::size_t kill : {at, at + 3}) {
    Child child(cat(recorder(cat("FILE_RECORDER_KILL=", kill)), command(run_of("killed"))), log());
    EXPECT_EQ(child.wait(), -SIGKILL);
    finish_killed_run();
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Killed, testing::ValuesIn(disturbed_methods),
                         [](const auto& each) { return each.param; });

using Leftovers = DisturbedRuns;

TEST_F(Leftovers, FoldersOfRewardProgramsAreRemovedOnceTheirProcessIsDead) {
  std::filesystem::create_directories(path("tmp"));
  const std::string with_folder = cat("env TMPDIR='", path("tmp"), "' ");
  Child child(cat(with_folder, command(arguments("sft", "long", "--set train.steps=100000"))),
              log());
  ASSERT_TRUE(child.until([&] { return steps_written("long") >= 1; }));
  const std::string pid = value_or_throw(read_file(path("long/.lock")));
  const std::string folder =
      path(cat("tmp/troupe-reward-", pid.substr(0, pid.find('\n')), "-abcdef"));
  std::filesystem::create_directories(folder + "/program's file");
  std::filesystem::create_directories(path("tmp/troupe-reward-notes"));
  const std::string foreign = folder.substr(0, folder.size() - 6) + "ghijkl";
  std::filesystem::create_directories(foreign);
  // Only root may. The user nobody, 65534, has the programs of root.
  const bool another_owner = ::chown(foreign.c_str(), 65533, 65533) == 0;
  const std::string other =
      cat(with_folder, command(arguments("sft", "other", "--set train.steps=1")), " >>'", log(),
          "' 2>&1 </dev/null");
  EXPECT_EQ(std::system(other.c_str()), 0);
  EXPECT_TRUE(std::filesystem::exists(folder)) << "its process is running";
  child.signal(SIGKILL);
  child.wait();
  EXPECT_EQ(std::system(other.c_str()), 0);
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_EQ(std::filesystem::exists(foreign), another_owner);
  EXPECT_TRUE(std::filesystem::exists(path("tmp/troupe-reward-notes")));
}

}  // namespace
}  // namespace troupe::test

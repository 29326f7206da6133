#include "engine/checkpoint/directory_lock.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/checkpoint/write_checkpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "engine/base/text/text.h"
#include "tests/engine/checkpoint/run_fixture.h"

namespace troupe::engine::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using RunCheckpoint = RunTest;

TEST_F(RunCheckpoint, ComesBackBitForBitUnderTheFixedNames) {
  const auto path = write(3);
  ASSERT_TRUE(path) << path.error().what;
  EXPECT_EQ(*path, out / "checkpoint-3");
  EXPECT_THAT(
      files_below(*path),
      ElementsAre("config.json", "model.safetensors", "tokenizer.json", "training/manifest.json",
                  "training/optimizer.safetensors", "training/state.json"));
  EXPECT_THAT(names(), ElementsAre(".lock", "checkpoint-3", "latest"));
  EXPECT_EQ(std::filesystem::read_symlink(out / "latest"), "checkpoint-3");
  EXPECT_TRUE(holds(*path, 3));
  EXPECT_TRUE(holds(out / "latest", 3));
  const auto found = find_latest(out.path());
  ASSERT_TRUE(found) << found.error().what;
  ASSERT_TRUE(*found);
  EXPECT_EQ((*found)->path, *path);
  EXPECT_EQ((*found)->step, 3);
  EXPECT_TRUE((*found)->warnings.empty());
}

TEST_F(RunCheckpoint, EqualRunsGiveEqualBytes) {
  Scratch second;
  ASSERT_TRUE(write(3));
  ASSERT_TRUE(write_checkpoint(*DirectoryLock::acquire(second.path()), snapshot(3)));
  const auto files = files_below(out / "checkpoint-3");
  ASSERT_EQ(files, files_below(second / "checkpoint-3"));
  for (const auto& file : files)
    EXPECT_EQ(slurp(out / ("checkpoint-3/" + file)), slurp(second / ("checkpoint-3/" + file)))
        << file;
}

TEST_F(RunCheckpoint, RoundedWeightsStillResumeExactly) {
  const auto path = write_checkpoint(*DirectoryLock::acquire(out.path()),
                                     snapshot(3, {.type = StoredType::bf16}));
  ASSERT_TRUE(path) << path.error().what;
  EXPECT_EQ(read_json(*path + "/config.json")->find("torch_dtype")->string(), "bfloat16");
  EXPECT_TRUE(holds(*path, 3));
}

TEST_F(RunCheckpoint, IsNotBegunWhereItDoesNotFit) {
  ASSERT_TRUE(write(1));
  WriteOptions full;
  full.free_bytes = [](const std::string&) -> std::uint64_t { return 11 * 12 - 1; };
  const auto refused = write(2, full);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::io);
  EXPECT_THAT(refused.error().what,
              HasSubstr(cat("a checkpoint needs 1 MiB, 0 MiB are free in ", out.path())));
  EXPECT_THAT(names(), ElementsAre(".lock", "checkpoint-1", "latest"));
  full.free_bytes = [](const std::string&) -> std::uint64_t { return 11 * 12; };
  EXPECT_TRUE(write(2, full));
}

TEST_F(RunCheckpoint, FreeSpaceIsThatOfItsFileSystem) {
  EXPECT_TRUE(check_space(out.path(), 1, free_bytes(out.path())));
  const auto refused = check_space(out.path(), std::uint64_t{1} << 62, free_bytes(out.path()));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("a checkpoint needs 4398046511104 MiB"));
}

TEST_F(RunCheckpoint, ARunWithoutCheckpointsStartsAnew) {
  EXPECT_FALSE(find_latest(out.path()).value());
  EXPECT_FALSE(find_latest(out / "none").value());
}

TEST_F(RunCheckpoint, TheSameStepIsReplaced) {
  ASSERT_TRUE(write(3));
  const std::string before = slurp(out / "checkpoint-3/model.safetensors");
  auto other = snapshot(3);
  device->upload(parameters.values(), numbers(4, 5));
  ASSERT_TRUE(write_checkpoint(*DirectoryLock::acquire(out.path()), other));
  EXPECT_NE(slurp(out / "checkpoint-3/model.safetensors"), before);
  EXPECT_EQ(find_latest(out.path()).value()->step, 3);
  EXPECT_THAT(names(), ElementsAre(".lock", "checkpoint-3", "latest"));
}

TEST_F(RunCheckpoint, OlderOnesAreRemovedBeyondTheLastAndNothingElseIs) {
  std::filesystem::create_directory(out / "checkpoint-best");
  std::filesystem::create_directory(out / "checkpoint-007");
  put(out / "metrics.jsonl", "{}");
  for (std::int64_t step : {1, 2, 10}) ASSERT_TRUE(write(step));
  ASSERT_TRUE(write(11, {.keep_last = 2}));
  EXPECT_THAT(names(), ElementsAre(".lock", "checkpoint-007", "checkpoint-10", "checkpoint-11",
                                   "checkpoint-best", "latest", "metrics.jsonl"));
  ASSERT_TRUE(write(5, {.keep_last = 2}));  // earlier step: later checkpoints stay
  EXPECT_THAT(names(), ElementsAre(".lock", "checkpoint-007", "checkpoint-10", "checkpoint-11",
                                   "checkpoint-5", "checkpoint-best", "latest", "metrics.jsonl"));
  EXPECT_EQ(find_latest(out.path()).value()->step, 5);  // `latest` decides
}

TEST_F(RunCheckpoint, TheBestOneIsNamedAndKept) {
  const auto best = [&] { return std::filesystem::read_symlink(out / "best").string(); };
  ASSERT_TRUE(write(1, {.keep_last = 2}));
  EXPECT_FALSE(std::filesystem::is_symlink(out / "best")) << "no best one was named";
  ASSERT_TRUE(write(2, {.keep_last = 2, .best_step = 2}));
  EXPECT_EQ(best(), "checkpoint-2");
  for (std::int64_t step : {3, 4, 5}) ASSERT_TRUE(write(step, {.keep_last = 2, .best_step = 2}));
  EXPECT_EQ(best(), "checkpoint-2");
  EXPECT_TRUE(holds(out / "best", 2));
  EXPECT_THAT(names(), ElementsAre(".lock", "best", "checkpoint-2", "checkpoint-4", "checkpoint-5",
                                   "latest"));
  ASSERT_TRUE(write(6, {.keep_last = 2, .best_step = 6}));
  EXPECT_EQ(best(), "checkpoint-6");
  EXPECT_THAT(names(), ElementsAre(".lock", "best", "checkpoint-5", "checkpoint-6", "latest"));
  ASSERT_TRUE(write(7, {.keep_last = 2, .best_step = 2}));
  EXPECT_EQ(best(), "checkpoint-6") << "step 2 is gone";
}

TEST_F(RunCheckpoint, OnlyTemporariesOfOurPatternAreSwept) {
  Scratch precious;
  put(precious / "thesis.txt", "all of it");
  std::filesystem::create_directories(out / ".tmp-checkpoint-7-123/training");
  std::filesystem::create_symlink("checkpoint-7", out / ".tmp-latest-123");
  std::filesystem::create_symlink("checkpoint-7", out / ".tmp-best-123");
  std::filesystem::create_directory_symlink(precious.path(), out / ".tmp-checkpoint-8-123");
  for (const std::string name :
       {".tmp-checkpoint-", ".tmp-checkpoint-x-1", ".tmp-checkpoint-7-123-old", ".tmp-latest-",
        "tmp-checkpoint-7-123"})
    std::filesystem::create_directory(out / name);
  ASSERT_TRUE(write(1));
  EXPECT_THAT(names(), ElementsAre(".lock", ".tmp-checkpoint-", ".tmp-checkpoint-7-123-old",
                                   ".tmp-checkpoint-x-1", ".tmp-latest-", "checkpoint-1", "latest",
                                   "tmp-checkpoint-7-123"));
  EXPECT_EQ(slurp(precious / "thesis.txt"), "all of it");
}

TEST_F(RunCheckpoint, StepsAreReadFromNamesExactly) {
  EXPECT_EQ(step_of_name("checkpoint-0"), 0);
  EXPECT_EQ(step_of_name("checkpoint-120"), 120);
  for (const auto* name : {"checkpoint-", "checkpoint-01", "checkpoint--1", "checkpoint-1x",
                           "Checkpoint-1", "checkpoint-1234567890123456789"})
    EXPECT_FALSE(step_of_name(name)) << name;
}

TEST_F(RunCheckpoint, ASecondRunIsRefusedAndToldWhoIsThere) {
  auto first = DirectoryLock::acquire(out.path());
  ASSERT_TRUE(first);
  const auto second = DirectoryLock::acquire(out.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::usage);
  EXPECT_THAT(second.error().what, HasSubstr(cat("process ", ::getpid(), " is writing")));
  first = fail(Errc::closed, "released");
  EXPECT_TRUE(DirectoryLock::acquire(out.path()));
}

// The file may have been left by a process with a number that another one has now.
TEST_F(RunCheckpoint, OnlyTheProcessThatHoldsTheLockIsNamed) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto lock = DirectoryLock::acquire(out.path());
    static_cast<void>(::write(ready[1], lock ? "x" : "-", 1));
    for (;;) ::pause();
  }
  char acquired = 0;
  ASSERT_EQ(::read(ready[0], &acquired, 1), 1);
  ASSERT_EQ(acquired, 'x');
  const int file = ::open((out.path() + "/.lock").c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  const std::string own = cat(::getpid(), "\n");
  ASSERT_EQ(::write(file, own.data(), own.size()), static_cast<ssize_t>(own.size()));
  ::close(file);
  const auto refused = DirectoryLock::acquire(out.path());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr(cat("process ", holder, " is writing")));
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  for (const int end : ready) ::close(end);
}

TEST_F(RunCheckpoint, OnlyItsUserCanOpenTheLock) {
  const std::string path = out.path() + "/.lock";
  ASSERT_TRUE(DirectoryLock::acquire(out.path()));
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
  std::filesystem::permissions(path, std::filesystem::perms(0644));  // as version 0.1.0 left it
  ASSERT_TRUE(DirectoryLock::acquire(out.path()));
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
}

TEST_F(RunCheckpoint, TheLockOfADeadProcessIsFree) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = DirectoryLock::acquire(out.path());
    ::_exit(lock ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(DirectoryLock::acquire(out.path()));
}

TEST_F(RunCheckpoint, KeepingOnlyOneIsABug) {
  EXPECT_THROW((void)write(1, {.keep_last = 1}), std::logic_error);
}

}  // namespace
}  // namespace troupe::engine::checkpoint

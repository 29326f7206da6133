#include "engine/checkpoint/leftovers.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/text/text.h"
#include "tests/engine/checkpoint/scratch.h"

namespace troupe::engine::checkpoint {
namespace {

using ::testing::UnorderedElementsAre;

// The name of this process in /proc.
std::string own_name() {
  char name[16] = {};
  ::prctl(PR_GET_NAME, name);
  return name;
}

// A process of this program, of a helper of it, or of another one, until the object is destroyed.
class Process {
 public:
  enum class Program { same, helper, another };
  explicit Process(Program program) {
    int ready[2];
    EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      if (program == Program::another) ::execlp("sleep", "sleep", "1000", nullptr);
      if (program == Program::helper) ::prctl(PR_SET_NAME, (own_name() + "-h").c_str());
      ::close(ready[1]);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 0);  // closed by exec or by the child
    ::close(ready[0]);
  }
  Process(const Process&) = delete;
  ~Process() { end(); }
  void end() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

struct Leftovers : ::testing::Test {
  static void write_at(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  void put_temporaries_of(pid_t pid) {
    write_at(out / cat(".tmp-checkpoint-3-", pid, "/training/state.json"), "{");
    std::filesystem::create_symlink("checkpoint-3", out / cat(".tmp-latest-", pid));
    std::filesystem::create_symlink("checkpoint-3", out / cat(".tmp-best-", pid));
    write_at(out / cat("metrics.jsonl.tmp-", pid), "half");
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(out.path()))
      found.push_back(entry.path().filename().string());
    return found;
  }
  Scratch out;
};

TEST_F(Leftovers, OfDeadProcessesAreRemoved) {
  Process dead(Process::Program::same);
  const pid_t pid = dead.pid();
  dead.end();
  put_temporaries_of(pid);
  put_temporaries_of(::getpid());
  write_at(out / "metrics.jsonl", "whole");
  ASSERT_TRUE(remove_temporaries(out.path()));
  EXPECT_THAT(names(), UnorderedElementsAre("metrics.jsonl"));
}

TEST_F(Leftovers, OfALiveProcessOfThisProgramStay) {
  Process live(Process::Program::same);
  put_temporaries_of(live.pid());
  ASSERT_TRUE(remove_temporaries(out.path()));
  EXPECT_EQ(names().size(), 4u);
  live.end();
  ASSERT_TRUE(remove_temporaries(out.path()));
  EXPECT_EQ(names().size(), 0u);
}

TEST_F(Leftovers, OfAHelperProcessStay) {
  const std::string name = own_name();  // has no room for a suffix
  ::prctl(PR_SET_NAME, name.substr(0, 8).c_str());
  const Process helper(Process::Program::helper);
  put_temporaries_of(helper.pid());
  const auto removed = remove_temporaries(out.path());
  ::prctl(PR_SET_NAME, name.c_str());
  ASSERT_TRUE(removed);
  EXPECT_EQ(names().size(), 4u);
}

// The number of the process that left them belongs to another program by now.
TEST_F(Leftovers, WithTheNumberOfAnotherProgramAreRemoved) {
  const Process other(Process::Program::another);
  put_temporaries_of(other.pid());
  ASSERT_TRUE(remove_temporaries(out.path()));
  EXPECT_EQ(names().size(), 0u);
}

TEST_F(Leftovers, OtherNamesStay) {
  Process dead(Process::Program::same);
  const pid_t pid = dead.pid();
  dead.end();
  write_at(out / "notes.tmp-x", "");
  write_at(out / cat("notes.tmp-", pid, "x"), "");
  write_at(out / cat(".tmp-", pid), "");
  write_at(out / cat(".tmp-checkpoint-x-", pid), "");
  write_at(out / cat("folder.tmp-", pid, "/file"), "");
  std::filesystem::create_symlink("notes.tmp-x", out / cat("link.tmp-", pid));
  ASSERT_TRUE(remove_temporaries(out.path()));
  EXPECT_EQ(names().size(), 6u);
  EXPECT_TRUE(remove_temporaries(out / "missing"));
}

TEST_F(Leftovers, VersionsWithoutTheirCheckpointAreRemoved) {
  write_at(out / "checkpoint-4/file", "");
  write_at(out / "checkpoint-6/file", "");
  for (const char* name : {"checkpoint-2", "checkpoint-4", "checkpoint-6", "notes"})
    write_at(out / cat("versions/", name, "/file"), "");
  const auto left = [&] {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(out / "versions"))
      names.push_back(each.path().filename());
    return names;
  };
  ASSERT_TRUE(remove_stale_versions(out.path()));
  EXPECT_THAT(left(), UnorderedElementsAre("checkpoint-4", "checkpoint-6", "notes"));
  ASSERT_TRUE(remove_stale_versions(out.path(), 6)) << "it was saved again";
  EXPECT_THAT(left(), UnorderedElementsAre("checkpoint-4", "notes"));
  std::filesystem::remove_all(out / "versions/notes");
  std::filesystem::remove_all(out / "checkpoint-4");
  ASSERT_TRUE(remove_stale_versions(out.path()));
  EXPECT_FALSE(std::filesystem::exists(out / "versions"));
}

TEST_F(Leftovers, CheckpointsBeyondThoseThatAreKeptAreRemoved) {
  for (const int step : {2, 4, 6, 8, 10, 12}) write_at(out / cat("checkpoint-", step, "/file"), "");
  write_at(out / "checkpoint-x", "");
  std::filesystem::create_symlink("checkpoint-10", out / "latest");
  ASSERT_TRUE(prune_checkpoints(out.path(), {.newest = 10, .last = 0}));
  EXPECT_EQ(names().size(), 8u);
  ASSERT_TRUE(prune_checkpoints(out.path(), {.newest = 10, .last = 2, .steps = {0, 4}}));
  EXPECT_THAT(names(), UnorderedElementsAre("checkpoint-4", "checkpoint-8", "checkpoint-10",
                                            "checkpoint-12", "checkpoint-x", "latest"));
}

}  // namespace
}  // namespace troupe::engine::checkpoint

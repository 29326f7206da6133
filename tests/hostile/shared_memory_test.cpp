// The memory that the ranks of a group share has no name while they run: other users can neither
// occupy the name nor fill its place, and a killed run leaves nothing.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/child.h"
#include "tests/system/processes.h"
#include "tests/system/runs.h"

namespace troupe::hostile::shared_memory_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr const char* endless = "--set train.steps=100000 --set train.save_every=50000 ";

bool works(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

/// Whether Open MPI gives this name to memory of its own.
bool names_a_segment(const std::string& path) {
  return path.find("vader_segment") != path.npos || path.find("sm_segment") != path.npos;
}

class SharedMemoryNames : public test::SystemRuns {
 protected:
  SharedMemoryNames() {
    fs::create_directory(place_);
    fs::permissions(place_, fs::perms::owner_all);
    value_or_throw(
        write_file_durably(path("cluster.yaml"), "groups: [{role: policy, parallel: {tp: 2}}]"));
  }
  ~SharedMemoryNames() override { fs::remove_all(place_); }

  std::string under_mpirun(const std::string& more) const {
    return cat("mpirun --allow-run-as-root --oversubscribe -n 2 ",
               command(arguments("sft", "out", "--set parallel.tp=2 " + more)));
  }
  std::string launched(const std::string& more) const {
    return command(
        cat("launch --cluster '", path("cluster.yaml"), "' -- ", arguments("sft", "out", more)));
  }
  /// `command` with a directory for temporary files of its own, and the mark. Open MPI frees not
  /// all of its memory at its end.
  std::string prepared(const std::string& command) const {
    return cat("env -u XDG_RUNTIME_DIR ASAN_OPTIONS=detect_leaks=0 TMPDIR='", place_, "' ", mark_,
               " ", command);
  }
  /// Starts the command and waits for some steps.
  void start(const std::string& command) {
    const std::size_t before = steps_written("out");
    child_.emplace(prepared(command), log());
    ASSERT_TRUE(child_->until([&] { return steps_written("out") >= before + 3; })) << said();
  }
  std::string said() const { return read_file(log()).value_or(""); }

  /// Paths of the memory that our processes share by a name.
  std::set<std::string> named_memory() const {
    std::set<std::string> named;
    std::size_t segments = 0;
    for (const test::Process& each : test::processes_with(mark_)) {
      std::istringstream lines(read_proc_file(cat("/proc/", each.pid, "/maps")));
      for (std::string line; std::getline(lines, line);) {
        const auto path_at = line.find('/');
        if (line.find(" rw-s ") == line.npos || path_at == line.npos) continue;
        const std::string path = line.substr(path_at);
        segments += names_a_segment(path);
        if (!path.ends_with(" (deleted)") &&
            (names_a_segment(path) || path.starts_with("/dev/shm")))
          named.insert(path);
      }
    }
    EXPECT_GE(segments, 4u) << "both ranks map both segments";
    return named;
  }
  /// Segments of Open MPI in /dev/shm and in our directory.
  std::set<std::string> segments_left() const {
    std::set<std::string> left;
    for (const std::string& place : {std::string("/dev/shm"), place_})
      for (const auto& each :
           fs::recursive_directory_iterator(place, fs::directory_options::skip_permission_denied))
        if (names_a_segment(each.path().string())) left.insert(each.path().string());
    return left;
  }
  /// Folders of troupe in our directory.
  std::set<std::string> folders_left() const {
    std::set<std::string> left;
    for (const auto& each : fs::directory_iterator(place_))
      if (each.path().filename().string().starts_with("troupe-")) left.insert(each.path().string());
    return left;
  }
  void kill_those_with(const std::string& words) {
    for (const test::Process& each : test::processes_with(mark_))
      if (each.command.find(words) != std::string::npos) ::kill(each.pid, SIGKILL);
    child_->wait();
    while (!test::processes_with(mark_).empty()) std::this_thread::yield();
  }
  void expect_nothing_is_left_of_a_killed(const std::string& words,
                                          const std::function<std::string(std::string)>& run) {
    const std::set<std::string> before = segments_left();
    start(run(endless));
    kill_those_with(words);
    EXPECT_EQ(segments_left(), before) << "its memory is free";
    std::filesystem::remove_all(path("out"));
    EXPECT_EQ(
        std::system(cat(prepared(run("--set train.steps=2")), " >'", log(), "' 2>&1").c_str()), 0)
        << said();
    EXPECT_EQ(segments_left(), before);
    EXPECT_THAT(folders_left(), IsEmpty());
  }

  /// Runs under mpirun and as a launch complete after `prefix`.
  void expect_completes(const std::string& prefix) {
    for (const std::string& run :
         {under_mpirun("--set train.steps=2"), launched("--set train.steps=2")}) {
      const std::string all = prepared(cat(prefix, " ", run));
      EXPECT_EQ(std::system(cat(all, " >'", log(), "' 2>&1").c_str()), 0) << all << said();
      fs::remove_all(path("out"));
    }
  }

  const std::string place_ = cat("/tmp/shared_memory_test-", ::getpid());
  const std::string mark_ =
      cat("TROUPE_TEST_MARK=", ::getpid(), "-", fs::path(folder_).filename().string());
  std::optional<test::Child> child_;
};

TEST_F(SharedMemoryNames, ThereAreNoneInARunUnderMpirun) {
  if (!works("mpirun --version")) GTEST_SKIP() << "mpirun is not installed";
  start(under_mpirun(endless));
  EXPECT_THAT(named_memory(), IsEmpty());
  child_->signal(SIGTERM);
  child_->wait();
}

TEST_F(SharedMemoryNames, ThereAreNoneInALaunch) {
  if (!works("mpirun --version")) GTEST_SKIP() << "mpirun is not installed";
  start(launched(endless));
  EXPECT_THAT(named_memory(), IsEmpty());
  child_->signal(SIGINT);
  EXPECT_EQ(child_->wait(), 130) << said();
  EXPECT_THAT(folders_left(), IsEmpty());
}

TEST_F(SharedMemoryNames, ARunToItsEndLeavesNothingAndSaysNothing) {
  if (!works("mpirun --version")) GTEST_SKIP() << "mpirun is not installed";
  const std::set<std::string> before = segments_left();
  const std::string run = prepared(under_mpirun("--set train.steps=2"));
  EXPECT_EQ(std::system(cat(run, " >'", log(), "' 2>&1").c_str()), 0) << said();
  EXPECT_THAT(said(), testing::Not(HasSubstr("system call failed")));
  EXPECT_EQ(segments_left(), before);
  EXPECT_THAT(folders_left(), IsEmpty());
}

/// A command that replaces /dev/shm for what it executes, after `more`, as this user or another.
std::string with_shm(const std::string& options, const std::string& more, const std::string& user) {
  return cat("unshare --mount sh -c 'mount -t tmpfs -o mode=1777,", options,
             " tmpfs /dev/shm && { ", more, "; exec ", user, " \"$@\"; }' -");
}

TEST_F(SharedMemoryNames, AFullFileSystemDoesNotStopARun) {
  if (!works("mpirun --version")) GTEST_SKIP() << "mpirun is not installed";
  const std::string full =
      with_shm("size=4k", "head -c 1M /dev/zero >/dev/shm/full 2>/dev/null", "");
  if (!works(full + " true")) GTEST_SKIP() << "no mount namespaces here, or not root";
  expect_completes(full);
}

// Another user creates all names that Open MPI gives to the segments of two ranks in /dev/shm: the
// host, the user and 16 bits of a job.
TEST_F(SharedMemoryNames, OccupiedByAnotherUserDoNotStopARun) {
  if (!works("mpirun --version")) GTEST_SKIP() << "mpirun is not installed";
  const std::string nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
  const std::string occupied =
      with_shm("nr_inodes=200000",
               "python3 -c \"import os, socket\n"
               "os.setgid(65533)\n"
               "os.setuid(65533)\n"
               "host = socket.gethostname().split(chr(46))[0]\n"
               "for job in range(65536):\n"
               "  for rank in 0, 1:\n"
               "    name = f\\\"/dev/shm/vader_segment.{host}.65534.{job:x}0001.{rank}\\\"\n"
               "    os.close(os.open(name, os.O_CREAT, 0o600))\"",
               nobody);
  if (!works(with_shm("size=4k", "true", nobody) + " '" TROUPE_PROGRAM "' --version"))
    GTEST_SKIP() << "not root, or no mount namespaces here, or nobody cannot read the program";
  fs::permissions(testing::TempDir(), fs::perms::others_exec, fs::perm_options::add);
  for (const std::string& each : {folder_, place_, path("cluster.yaml")})
    ASSERT_EQ(::chown(each.c_str(), 65534, 65534), 0);
  expect_completes(occupied);
}

TEST_F(SharedMemoryNames, KilledRunsLeaveNothingAfterTheNextStart) {
  if (!works("mpirun --version")) GTEST_SKIP() << "mpirun is not installed";
  const auto with_mpirun = [this](const std::string& more) { return under_mpirun(more); };
  const auto as_launch = [this](const std::string& more) { return launched(more); };
  for (const char* victims : {"/troupe train", "mpirun"}) {
    SCOPED_TRACE(victims);
    expect_nothing_is_left_of_a_killed(victims, with_mpirun);
  }
  for (const char* victims : {"/troupe worker", "/troupe launch"}) {
    SCOPED_TRACE(victims);
    expect_nothing_is_left_of_a_killed(victims, as_launch);
  }
}

}  // namespace
}  // namespace troupe::hostile::shared_memory_test

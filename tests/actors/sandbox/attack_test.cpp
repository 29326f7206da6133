// Attacks of a reward program on the memory of the machine, on other processes, on sockets and on
// metrics. Each runs as the user of the test and, if that is root, as an ordinary user too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "actors/roles/rules/command.h"
#include "actors/sandbox/census.h"
#include "actors/sandbox/landlock.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/actors/sandbox/marked.h"
#include "tests/support/sanitized.h"

namespace troupe::actors::rules {
namespace {

using sandbox::Isolation;
using sandbox::marked_processes;
using testing::HasSubstr;

constexpr int memory_mb = 512, processes = 4, file_mb = 16;

std::string name_of(Isolation isolation) {
  return std::string(names_of(isolation)[static_cast<std::size_t>(isolation)]);
}

class Attack : public testing::Test {
 protected:
  CommandOptions options(Isolation isolation, const std::string& mode,
                         const std::string& third = "") {
    mark_ = cat("attack-", ::getpid(), "-", ++count_);
    CommandOptions options;
    options.run = {sandbox::hostile_program(), mode, mark_, third};
    options.timeout = options.startup = 60;
    options.limits.isolation = isolation;
    options.limits.memory_mb = memory_mb;
    options.limits.processes = processes;
    options.limits.file_mb = file_mb;
    return options;
  }
  static RuleResult ask(Command& command, const char* completion = "bad") {
    const protocol::RewardRequest request{"a question", completion, "an answer"};
    return command.score({&request, 1})[0];
  }
  // Expects that the attack could do nothing forbidden: no bit of its answer is set.
  void finds_nothing(Isolation isolation, const std::string& mode, const std::string& third = "") {
    if (const auto why = sandbox::denied(isolation); !why.empty()) GTEST_SKIP() << "SKIP: " << why;
    Command command(options(isolation, mode, third), "reward[0]");
    const auto result = ask(command);
    ASSERT_TRUE(result) << result.error().what;
    EXPECT_EQ(result->reward, 0) << mode << ", " << name_of(isolation)
                                 << ": the bits show what was possible, "
                                    "tests/actors/sandbox/hostile.cpp";
  }

  std::string mark_;
  static inline int count_ = 0;
};

// soon() for effects that need processor time, which a busy machine gives late.
bool eventually(const std::function<bool()>& done) {
  bool reached = false;
  for (int i = 0; i < 20 && !reached; ++i) reached = sandbox::soon(done);
  return reached;
}

std::uint64_t mib_of_line(const std::string& text, const std::string& name) {
  const auto at = text.find(name + ":");
  return at == text.npos ? 0
                         : std::strtoull(text.c_str() + at + name.size() + 1, nullptr, 10) >> 10;
}

std::uint64_t shared_mib() {
  return mib_of_line(read_proc_file("/proc/meminfo"), "Shmem");
}

// The largest memory of the marked processes and of the machine's shared memory, while it exists.
class PeakMemory {
 public:
  explicit PeakMemory(std::string mark) : mark_(std::move(mark)), before_(shared_mib()) {
    watch_ = std::jthread([this](std::stop_token enough) {
      while (!enough.stop_requested()) sample();
    });
  }
  std::uint64_t mib() const { return peak_; }

 private:
  void sample() {
    std::uint64_t sum = 0;
    for (const int id : sandbox::marked_ids(mark_))
      sum += mib_of_line(read_proc_file(cat("/proc/", id, "/status")), "RssAnon");
    const std::uint64_t shared = shared_mib();
    sum += shared > before_ ? shared - before_ : 0;
    if (sum > peak_) peak_ = sum;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  std::string mark_;
  std::uint64_t before_;
  std::atomic<std::uint64_t> peak_ = 0;
  std::jthread watch_;
};

struct MemoryAttack {
  Isolation isolation;
  const char* how;
  std::string cgroup = {};
};
void PrintTo(const MemoryAttack& attack, std::ostream* out) {
  *out << attack.how;
}

class Memory : public Attack, public testing::WithParamInterface<MemoryAttack> {};

// The attack fails, or is killed when it holds more than memory_mb, also after its answer.
TEST_P(Memory, IsBounded) {
  const auto [isolation, how, cgroup] = GetParam();
  if (const auto why = sandbox::denied(isolation); !why.empty()) GTEST_SKIP() << "SKIP: " << why;
  if (std::string(how) == "other_folders" && isolation == Isolation::limits &&
      sandbox::landlock_version() == 0)
    GTEST_SKIP() << "SKIP: no Landlock, which confines files under isolation: limits";
  std::uint64_t peak = 0;
  {
    Command command(options(isolation, "holds_memory", how), "reward[0]");
    ASSERT_TRUE(ask(command, "good"));
    const PeakMemory memory(mark_);
    const auto result = ask(command);
    if (result && result->reward * processes > memory_mb) {
      EXPECT_TRUE(sandbox::soon([&] { return marked_processes(mark_) == 0; }))
          << how << " holds " << result->reward << " MiB in each process while idle";
    }
    if (!result) {
      EXPECT_THAT(result.error().what, testing::AnyOf(testing::StartsWith("memory: "),
                                                      testing::StartsWith("flood: its files")))
          << how;
    }
    peak = memory.mib();
  }
  EXPECT_LE(peak, memory_mb * processes + 100) << how;
  EXPECT_EQ(marked_processes(mark_), 0) << how << " left something behind";
}

std::vector<MemoryAttack> all_memory_attacks() {
  std::vector<MemoryAttack> out;
  for (const Isolation isolation : {Isolation::namespaces, Isolation::limits})
    for (const char* how :
         {"private_memory", "sysv_shared_memory", "memory_files", "posix_shared_memory",
          "working_folder", "other_folders", "mapped_deleted_files", "shared_mappings",
          "remains_of_small_mappings", "remains_of_large_mappings", "zero_device", "socket_buffers",
          "pipes", "pages_in_pipes", "semaphores", "message_queues"})
      out.push_back({isolation, how});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Attack, Memory, testing::ValuesIn(all_memory_attacks()),
                         [](const auto& one) {
                           return name_of(one.param.isolation) + "_" + one.param.how;
                         });

class Escape : public Attack, public testing::WithParamInterface<Isolation> {};

TEST_P(Escape, CannotReadOrWriteItsParent) {
  finds_nothing(GetParam(), "reads_parent", cat("pid:", ::getpid()));
}

TEST_P(Escape, CannotReadOrWriteTheHelper) {
  if (const auto why = sandbox::denied(GetParam()); !why.empty()) GTEST_SKIP() << "SKIP: " << why;
  Command other(options(GetParam(), "none"), "reward[0]");
  ASSERT_TRUE(other.start());
  const int helper = sandbox::helper_id();
  ASSERT_GT(helper, 0);
  finds_nothing(GetParam(), "reads_parent", cat("pid:", helper));
}

TEST_P(Escape, FindsNoUnknownCallOrOtherAbi) {
  finds_nothing(GetParam(), "unknown_calls");
}

TEST_P(Escape, ConnectsToNoUnixSocketThatItSees) {
  const sandbox::UnixListener listener;
  if (const auto why = sandbox::denied(GetParam()); !why.empty()) GTEST_SKIP() << "SKIP: " << why;
  auto given = options(GetParam(), "unix_socket", "");
  given.run.back() = listener.path();
  given.limits.read = {listener.folder()};
  Command command(given, "reward[0]");
  const auto result = ask(command);
  ASSERT_TRUE(result) << result.error().what;
  EXPECT_EQ(result->reward, 0);
}

TEST_P(Escape, ConnectsToAUnixSocketWithNetwork) {
  const sandbox::UnixListener listener;
  if (const auto why = sandbox::denied(GetParam()); !why.empty()) GTEST_SKIP() << "SKIP: " << why;
  auto given = options(GetParam(), "unix_socket", "");
  given.run.back() = listener.path();
  given.limits.read = {listener.folder()};
  given.limits.network = true;
  Command command(given, "reward[0]");
  const auto result = ask(command);
  ASSERT_TRUE(result) << result.error().what;
  EXPECT_EQ(static_cast<int>(result->reward) & 1, 1);
}

TEST_P(Escape, SendsNoSignalToItsParent) {
  if (GetParam() == Isolation::limits && ::getuid() != 0 && sandbox::landlock_version() < 6)
    GTEST_SKIP() << "SKIP: Landlock of this kernel does not restrict signals";
  finds_nothing(GetParam(), "attack", std::to_string(::getpid()));
}

TEST_P(Escape, IsChargedForTimeBetweenCompletions) {
  if (const auto why = sandbox::denied(GetParam()); !why.empty()) GTEST_SKIP() << "SKIP: " << why;
  auto given = options(GetParam(), "spins_in_children");
  given.limits.cpu_seconds = 1;
  Command command(given, "reward[0]");
  ASSERT_TRUE(ask(command));
  EXPECT_TRUE(eventually([&] { return marked_processes(mark_) == 0; }))
      << "its children still compute";
}

TEST_P(Escape, LeavesNoProcessWhenItsParentIsKilled) {
  if (const auto why = sandbox::denied(GetParam()); !why.empty()) GTEST_SKIP() << "SKIP: " << why;
  const auto given = options(GetParam(), "spins_in_children");
  const sandbox::TemporaryFolder own;
  const pid_t child = ::fork();
  if (child == 0) {
    Command command(given, "reward[0]");
    if (ask(command) && marked_processes(mark_) >= 2) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the program did not start";
  EXPECT_TRUE(sandbox::soon([&] { return marked_processes(mark_) == 0; }));
  EXPECT_TRUE(sandbox::soon([&] { return std::filesystem::is_empty(own.path()); }))
      << "a folder is left";
}

TEST_P(Escape, HasAtMost64NamesOfParts) {
  if (const auto why = sandbox::denied(GetParam()); !why.empty()) GTEST_SKIP() << "SKIP: " << why;
  Command command(options(GetParam(), "many_parts"), "reward[0]");
  std::set<std::string> names;
  for (int i = 0; i < 4; ++i) {
    const auto result = ask(command);
    ASSERT_TRUE(result) << result.error().what;
    for (const auto& [name, value] : result->parts) names.insert(name);
    if (i > 0) {
      EXPECT_THAT(result->parts, testing::ElementsAre(testing::Pair("ignored_parts", 64)));
    }
  }
  EXPECT_EQ(names.size(), 65);
}

INSTANTIATE_TEST_SUITE_P(Attack, Escape, testing::Values(Isolation::namespaces, Isolation::limits),
                         [](const auto& one) { return name_of(one.param); });

// All attacks of this file again, by a program that an ordinary user runs.
TEST(AttackOfAnOrdinaryUser, IsContained) {
  if (::getuid() != 0) GTEST_SKIP() << "SKIP: this is an ordinary user already";
  if (test::sanitized)
    GTEST_SKIP() << "SKIP: it only repeats the attacks, for the kernel's answers";
  // The folder of the build may be closed to others.
  const sandbox::TemporaryFolder own;
  namespace fs = std::filesystem;
  ASSERT_EQ(::chmod(own.path().c_str(), 0777), 0);
  fs::copy("/proc/self/exe", own.path() + "/tests");
  fs::copy(sandbox::hostile_program(), own.path() + "/program");
  const std::string command =
      cat("exec setpriv --reuid=65534 --regid=65534 --clear-groups "
          "--inh-caps=-all --bounding-set=-all env TMPDIR=",
          own.path(), " TROUPE_HOSTILE=", own.path(), "/program ", own.path(),
          "/tests --gtest_brief=1 --gtest_filter='Attack/*'");
  ASSERT_EQ(std::system("setpriv --version >/dev/null 2>&1"), 0) << "setpriv of util-linux";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace troupe::actors::rules

// Reward programs that hang, fork, flood, crash and lie: each is contained and counted as one
// failure, and the next request is scored.
#include "actors/roles/rules/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "engine/base/text/text.h"
#include "tests/actors/sandbox/marked.h"

namespace troupe::actors::rules {
namespace {

using sandbox::Isolation;
using sandbox::marked_processes;
using testing::HasSubstr;
using testing::StartsWith;

constexpr double patient = 60;  // seconds: more than a busy machine takes

CommandOptions options_of(std::vector<std::string> run,
                          Isolation isolation = Isolation::namespaces) {
  CommandOptions options;
  options.run = std::move(run);
  options.timeout = options.startup = patient;
  options.limits.isolation = isolation;
  options.limits.memory_mb = 128;
  return options;
}

protocol::RewardRequest about(std::string completion) {
  return {"a question", std::move(completion), "an answer"};
}

RuleResult ask(Command& command, std::string completion) {
  const auto request = about(std::move(completion));
  return command.score({&request, 1})[0];
}

double reward(Command& command, std::string completion) {
  const auto result = ask(command, std::move(completion));
  EXPECT_TRUE(result) << result.error().what;
  return result ? result->reward : -99;
}

long resident_mib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss / 1024;
}

class Hostile : public testing::TestWithParam<Isolation> {
 protected:
  void SetUp() override {
    if (const auto denied = sandbox::denied(GetParam()); !denied.empty())
      GTEST_SKIP() << "SKIP: " << denied;
  }
  CommandOptions options(const std::string& mode, const std::string& third = "") {
    mark_ = cat("mark-", ::getpid(), "-", ++count_);
    return options_of({TROUPE_HOSTILE, mode, mark_, third}, GetParam());
  }
  // A good, a bad and a good request: the bad one fails with a message that begins with its kind
  // and leaves no process.
  void fails(const std::string& mode, const std::string& kind, CommandOptions options) {
    const long before = resident_mib();
    {
      Command command(std::move(options), "reward[0]");
      EXPECT_EQ(reward(command, "good"), 1);
      const auto result = ask(command, "bad");
      ASSERT_FALSE(result) << mode;
      EXPECT_THAT(result.error().what, StartsWith(kind + ": ")) << mode;
      EXPECT_EQ(marked_processes(mark_), 0) << mode << " left something behind";
      EXPECT_EQ(reward(command, "good"), 1) << "after " << mode;
    }
    EXPECT_EQ(marked_processes(mark_), 0) << mode << " left something behind at the end";
    EXPECT_LT(resident_mib() - before, 32) << mode;
  }
  void fails(const std::string& mode, const std::string& kind) { fails(mode, kind, options(mode)); }
  void times_out(const std::string& mode) {
    auto given = options(mode);
    given.timeout = 0.15;
    fails(mode, "timeout", std::move(given));
  }
  // Expects that a bad request could do nothing forbidden: no bit is set.
  void finds_nothing(const std::string& mode, const std::string& third = "") {
    Command command(options(mode, third), "reward[0]");
    EXPECT_EQ(reward(command, "bad"), 0)
        << mode << ": the bits show what was possible, tests/actors/sandbox/hostile.cpp";
    EXPECT_EQ(reward(command, "good"), 1);
  }

  std::string mark_;
  static inline int count_ = 0;
};

TEST_P(Hostile, HangsForever) {
  times_out("hang");
}
TEST_P(Hostile, ComputesForever) {
  times_out("busy");
}
TEST_P(Hostile, IgnoresEverySignal) {
  times_out("ignores_signals");
}
TEST_P(Hostile, ForksWithoutEnd) {
  times_out("fork_bomb");
}
TEST_P(Hostile, FloodsItsErrors) {
  times_out("flood_errors");
}
TEST_P(Hostile, LeavesADaemonAndEnds) {
  fails("daemon", "crash");
}
TEST_P(Hostile, FloodsItsOutputWithLines) {
  fails("flood_lines", "malformed");
}
TEST_P(Hostile, WritesALineWithoutEnd) {
  fails("endless_line", "flood");
}
TEST_P(Hostile, AllocatesTenGigabytes) {
  fails("allocates", "crash");
}
TEST_P(Hostile, GrowsInManyProcesses) {
  fails("grows_together", "memory");
}
TEST_P(Hostile, Segfaults) {
  fails("segfault", "crash");
}
TEST_P(Hostile, Aborts) {
  fails("aborts", "crash");
}
TEST_P(Hostile, ExitsAsIfAllWereWell) {
  fails("exits_0", "crash");
}
TEST_P(Hostile, ExitsWithACode) {
  fails("exits_3", "crash");
}
TEST_P(Hostile, ClosesItsOutput) {
  fails("closes_output", "crash");
}

TEST_P(Hostile, Lies) {
  for (const char* mode :
       {"wrong_id", "earlier_id", "twice", "out_of_order", "nan", "infinite", "huge_number",
        "huge_integer", "string_reward", "missing_reward", "missing_id", "string_id",
        "not_an_object", "not_json", "empty_line", "not_utf8", "deep", "same_key", "bad_parts"})
    fails(mode, "malformed");
  fails("half_a_line", "crash");
}

// A second response may answer an earlier request: a new process gets the request, and lies as
// well, and so does that of the second try, whose request has the next id.
TEST_P(Hostile, AnswersAnEarlierQuestion) {
  Command command(options("earlier_id"), "reward[0]");
  EXPECT_EQ(reward(command, "good"), 1);
  EXPECT_EQ(ask(command, "bad").error().what,
            "malformed: the answer's id is 2, the request's is 3");
  EXPECT_EQ(reward(command, "good"), 1);
}

TEST_P(Hostile, LeavesADaemonBehindItsAnswer) {
  {
    Command command(options("daemon_and_answer"), "reward[0]");
    EXPECT_EQ(reward(command, "bad"), 1);
    EXPECT_EQ(reward(command, "good"), 1);
  }
  EXPECT_EQ(marked_processes(mark_), 0);
}

TEST_P(Hostile, NeverReads) {
  auto given = options("never_reads");
  given.timeout = given.startup = 0.1;
  Command command(std::move(given), "reward[0]");
  for (int i = 0; i < 2; ++i) {
    const auto result = ask(command, std::string(1 << 20, 'x'));  // more than a pipe holds
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().what, StartsWith("timeout: no answer after 0.2 s; expected: "));
  }
  EXPECT_EQ(marked_processes(mark_), 0);
}

TEST_P(Hostile, ClosesItsInput) {
  Command command(options("closes_input"), "reward[0]");
  const auto result = ask(command, std::string(1 << 20, 'x'));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "crash: it closed its standard input");
}

TEST_P(Hostile, DeletesItsOwnFolder) {
  Command command(options("deletes_its_folder"), "reward[0]");
  EXPECT_EQ(reward(command, "bad"), 1);
  EXPECT_EQ(reward(command, "good"), 1);
}

TEST_P(Hostile, WritesAHugeFile) {
  auto given = options("huge_file");
  given.limits.file_mb = 4;
  Command command(std::move(given), "reward[0]");
  EXPECT_LE(reward(command, "bad"), 4);
  EXPECT_EQ(reward(command, "good"), 1);
}

TEST_P(Hostile, ReachesNoNetwork) {
  const sandbox::Listener listener;
  finds_nothing("network", listener.port());
}

TEST_P(Hostile, TriesToGetOut) {
  finds_nothing("escapes");
}

TEST_P(Hostile, EndsAtOnceAndNeverAnswers) {
  Command command(options("exits_at_once"), "reward[0]");
  const std::vector<protocol::RewardRequest> many(30, about("good"));
  for (int i = 10; i <= 11; ++i) {
    try {
      command.score(many);
      FAIL() << "expected that it is given up";
    } catch (const Failure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr(cat("failed ", i,
                                                " times without ever answering; last "
                                                "failure: crash: it exited with code 4")));
    }
    EXPECT_EQ(marked_processes(mark_), 0);
  }
}

TEST_P(Hostile, EndsAfterEachAnswer) {
  Command command(options("answers_and_exits"), "reward[0]");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(reward(command, "bad"), 1);  // another process each time
}

TEST_P(Hostile, StartsWhileOtherThreadsComeAndGo) {
  const std::jthread busy([](std::stop_token enough) {
    while (!enough.stop_requested()) std::thread([] {}).join();
  });
  auto given = options("none");
  given.fresh = true;
  Command command(std::move(given), "reward[0]");
  const std::vector<protocol::RewardRequest> many(60, about("good"));
  for (const auto& result : command.score(many)) EXPECT_TRUE(result) << result.error().what;
}

TEST_P(Hostile, LastOutputIsReportedAndNotTheMemoryOfItsParent) {
  const std::vector<char> large(std::size_t{200} << 20, 'x');  // more than the program may have
  ASSERT_EQ(large.back(), 'x');
  Command command(options("exits_3"), "reward[0]");
  EXPECT_EQ(ask(command, "bad").error().what,
            "crash: it exited with code 3 without an answer; its standard error ended with: "
            "\"cannot continue\"");
}

TEST_P(Hostile, IsGoneWhenItsParentIsKilled) {
  const auto given = options("hang");
  const sandbox::TemporaryFolder own;  // a parent that is killed cannot remove what it made
  const pid_t child = ::fork();
  if (child == 0) {
    Command command(given, "reward[0]");
    if (command.start() && marked_processes(mark_) >= 1) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the program did not start";
  EXPECT_TRUE(sandbox::soon([&] { return marked_processes(mark_) == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Command, Hostile,
                         testing::Values(Isolation::namespaces, Isolation::limits),
                         [](const auto& one) {
                           return std::string(
                               names_of(Isolation{})[static_cast<std::size_t>(one.param)]);
                         });

// Accesses that only namespaces deny.
class Boxed : public Hostile {};

TEST_P(Boxed, SeesNoSecrets) {
  const sandbox::Secret secret;
  finds_nothing("secrets", "file:" + secret.path());  // an argument that is a path would be shown
}

TEST_P(Boxed, ReachesNoLocalService) {
  const sandbox::Listener listener;
  finds_nothing("abstract_socket", listener.name());
}

TEST_P(Boxed, AttacksItsParentInVain) {
  finds_nothing("attack", std::to_string(::getpid()));
}
TEST_P(Boxed, KillsAllThatItSees) {
  finds_nothing("kills_all");
}

INSTANTIATE_TEST_SUITE_P(Command, Boxed, testing::Values(Isolation::namespaces),
                         [](const auto&) { return "namespaces"; });

}  // namespace
}  // namespace troupe::actors::rules

// Supervision: the helper and the workers of a reward program are killed and stopped; no completion
// loses its reward, nothing waits for ever, and nothing is left.
#include "actors/sandbox/helper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "actors/roles/rules/command.h"
#include "actors/sandbox/temp_folder.h"
#include "engine/base/text/text.h"
#include "tests/actors/sandbox/marked.h"

namespace troupe::actors::rules {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using sandbox::Isolation;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Answers 1; a completion "wait" when the file `go` of the given folder exists, and "exit" never.
constexpr const char* program = R"(while read -r line; do id=${line#*:}; case $line in
*'"wait"'*) while [ ! -e "$1/go" ]; do sleep 0.02; done;;
*'"exit"'*) exit 3;; *'"junk"'*) echo junk;; esac
echo '{"id": '${id%%,*}', "reward": 1}'; done)";

class Supervised : public testing::TestWithParam<Isolation> {
 protected:
  void SetUp() override {
    if (const auto denied = sandbox::denied(GetParam()); !denied.empty())
      GTEST_SKIP() << "SKIP: " << denied;
  }
  CommandOptions options(int workers) {
    mark_ = cat("supervised-", ::getpid(), "-", ++count_);
    CommandOptions options;
    options.run = {"sh", "-c", program, "sh", folder_.path(), mark_};
    options.timeout = options.startup = 60;
    options.workers = workers;
    options.limits.isolation = GetParam();
    options.limits.read = {folder_.path()};
    return options;
  }
  void let_go() const { std::ofstream(folder_.path() + "/go") << "go"; }
  // Scores `completions`, while `meanwhile`, if there is one, happens to the processes, which have
  // begun.
  std::vector<RuleResult> score(Command& command, const std::vector<std::string>& completions,
                                const std::function<void()>& meanwhile = {}) {
    std::vector<protocol::RewardRequest> requests;
    for (const auto& each : completions) requests.push_back({"", each, Json()});
    auto scoring = std::async(std::launch::async, [&] { return command.score(requests); });
    if (meanwhile) {
      EXPECT_TRUE(sandbox::soon([&] { return sandbox::marked_processes(mark_) > 0; }));
      meanwhile();
    }
    return scoring.get();
  }
  static void expect_rewards(const std::vector<RuleResult>& results) {
    for (const auto& result : results) EXPECT_TRUE(result) << result.error().what;
  }
  void expect_nothing_left() const {
    EXPECT_TRUE(sandbox::soon([&] { return sandbox::marked_processes(mark_) == 0; }));
  }

  const sandbox::TemporaryFolder folder_;
  std::string mark_;
  static inline int count_ = 0;
};

TEST_P(Supervised, AHelperThatIsKilledIsStartedAgain) {
  Command command(options(2), "reward[0]");
  for (int i = 0; i < 3; ++i) {
    fs::remove(folder_.path() + "/go");
    const auto results = score(command, {"wait", "wait", "good", "wait"}, [&] {
      const int helper = sandbox::helper_id();
      ASSERT_GT(helper, 0);
      ::kill(helper, SIGKILL);
      EXPECT_TRUE(sandbox::soon([&] { return sandbox::helper_id() != helper; }));
      let_go();
    });
    expect_rewards(results);
  }
}

TEST_P(Supervised, AHelperThatIsKilledBetweenTwoCompletionsCostsNothing) {
  Command command(options(1), "reward[0]");
  for (int i = 0; i < 3; ++i) {
    expect_rewards(score(command, {"good"}));
    ::kill(sandbox::helper_id(), SIGKILL);
  }
  expect_rewards(score(command, {"good"}));
}

// The rule's timeout is not waited for, nor the end of the helper for ever.
TEST_P(Supervised, AHelperThatIsStoppedIsReplaced) {
  const auto begin = Clock::now();
  {
    Command command(options(2), "reward[0]");
    const auto results = score(command, {"wait", "wait", "exit", "wait"}, [&] {
      ::kill(sandbox::helper_id(), SIGSTOP);
      let_go();
    });
    for (const std::size_t i : {0, 1, 3}) EXPECT_TRUE(results[i]) << results[i].error().what;
    ASSERT_FALSE(results[2]);
    EXPECT_THAT(results[2].error().what, StartsWith("crash: it exited with code 3"));
    ::kill(sandbox::helper_id(), SIGSTOP);
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(55));
  expect_nothing_left();
  EXPECT_EQ(sandbox::helper_id(), 0);
}

TEST_P(Supervised, NothingIsLeftWhenAParentIsKilledWhoseHelperIsStopped) {
  const auto given = options(2);
  const pid_t child = ::fork();
  if (child == 0) {
    Command command(given, "reward[0]");
    if (!command.start() || sandbox::marked_processes(mark_) < 2) ::_exit(1);
    ::kill(sandbox::helper_id(), SIGSTOP);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the program did not start";
  expect_nothing_left();
  EXPECT_TRUE(sandbox::soon([] { return sandbox::stopped_processes(sandbox::helper_name) == 0; }));
  EXPECT_TRUE(sandbox::soon([&] { return fs::is_empty(folder_.path()); })) << "a folder is left";
}

TEST_P(Supervised, ACompletionWhoseWorkerIsKilledIsScoredByAnother) {
  Command command(options(2), "reward[0]");
  const auto results = score(command, {"wait", "good", "wait"}, [&] {
    for (const int id : sandbox::marked_ids(mark_)) ::kill(id, SIGKILL);
    let_go();
  });
  expect_rewards(results);
}

TEST_P(Supervised, ACompletionIsScoredTwiceAtMost) {
  Command command(options(2), "reward[0]");
  testing::internal::CaptureStderr();
  const auto results = score(command, {"exit", "good", "junk", "good"});
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(results[1] && results[3]);
  ASSERT_FALSE(results[0]);
  ASSERT_FALSE(results[2]);
  EXPECT_EQ(results[0].error().kind, FailureKind::crash);
  EXPECT_EQ(results[2].error().kind, FailureKind::malformed);
  EXPECT_THAT(log, HasSubstr("no reward for 2 of 4 completions (1 crash, 1 malformed)"));
}

INSTANTIATE_TEST_SUITE_P(Helper, Supervised,
                         testing::Values(Isolation::namespaces, Isolation::limits),
                         [](const auto& one) {
                           return std::string(
                               names_of(Isolation{})[static_cast<std::size_t>(one.param)]);
                         });

TEST(Program, ThatAnswersNothingIsRefusedWithWhatIsExpected) {
  if (const auto denied = sandbox::denied(Isolation::namespaces); !denied.empty())
    GTEST_SKIP() << "SKIP: " << denied;
  for (const char* script : {"cat > /dev/null", "exit 0"}) {
    CommandOptions options;
    options.run = {"sh", "-c", script};
    options.timeout = options.startup = 0.1;
    options.workers = 4;
    Command command(options, "reward[0]");
    const std::vector<protocol::RewardRequest> many(20);
    try {
      command.score(many);
      FAIL() << "expected that it is given up";
    } catch (const Failure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr("without ever answering; last failure: "));
      EXPECT_THAT(failure.what(),
                  HasSubstr("expected: it reads JSON lines from standard input and prints {\"id\": "
                            "..., \"reward\": ...} for each of them, flushed (docs/rewards.md)"));
    }
  }
}

// A chain of folders whose path no call accepts, with files, links and closed folders in it.
void nest_folders(const std::string& path, int depth) {
  const auto before = fs::current_path();
  fs::current_path(path);
  for (int i = 0; i < depth; ++i) {
    ASSERT_EQ(::mkdir("inner-folder", 0700), 0);
    std::ofstream("file") << "text";
    fs::create_symlink("/etc", "link");
    ASSERT_EQ(::chdir("inner-folder"), 0);
  }
  ASSERT_EQ(::mkdir("closed", 0), 0);
  fs::current_path(before);
}

TEST(TempFolder, IsRemovedHoweverDeep) {
  const sandbox::TemporaryFolder own;
  const auto path = value_or_throw(sandbox::make_temp_folder(own.path(), ::getuid()));
  const std::string kept = own.path() + "/kept";
  std::ofstream(kept) << "text";
  fs::create_symlink(kept, path + "/link-to-a-file");
  nest_folders(path, 600);
  EXPECT_TRUE(sandbox::remove_temp_folder(path));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(kept));
}

TEST(TempFolder, OfAnEndedProcessIsSweptAndOthersStay) {
  const sandbox::TemporaryFolder own;
  const std::string ended = own.path() + "/troupe-reward-4000001-abcdef",
                    running = own.path() + "/troupe-reward-4000002-abcdef",
                    other = own.path() + "/troupe-reward-x-abcdef";
  for (const auto& each : {ended, running, other}) fs::create_directories(each + "/inner");
  if (::getuid() == 0) {  // root's programs run as nobody
    ASSERT_EQ(::chown(ended.c_str(), 65534, 65534), 0);
  }
  nest_folders(ended, 500);
  fs::create_directory_symlink(other, own.path() + "/troupe-reward-4000001-linked");
  sandbox::remove_temp_folders([](pid_t process) { return process == 4000002; });
  EXPECT_FALSE(fs::exists(ended));
  EXPECT_TRUE(fs::exists(running + "/inner"));
  EXPECT_TRUE(fs::exists(other + "/inner"));
}

}  // namespace
}  // namespace troupe::actors::rules

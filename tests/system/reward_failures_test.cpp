// Reward programs that are killed, stopped or down during a run: no reward is lost, or the run ends
// before it trains on the rest, and the same command completes it with the weights of an
// undisturbed run.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// Rewards the length of the request; exits while the file `down` exists, and sleeps for a text of
// each seventh length if the file `slow` exists.
constexpr const char* reward_script = R"(while read -r line; do
[ -e "$1/down" ] && exit 3
[ -e "$1/slow" ] && [ $((${#line} % 7)) = 3 ] && sleep 5
sleep 0.02; id=${line#*:}; text=${line#*completion}
echo '{"id": '${id%%,*}', "reward": '$((${#text} % 5))'}'; done
)";

// Processes whose arguments begin with `words`.
std::vector<pid_t> processes_that_run(const std::string& words) {
  std::vector<pid_t> out;
  std::error_code failed;
  for (fs::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string id = at->path().filename().string();
    if (id.find_first_not_of("0123456789") != std::string::npos) continue;
    if (read_proc_file(at->path().string() + "/cmdline").starts_with(words))
      out.push_back(static_cast<pid_t>(std::stol(id)));
  }
  return out;
}

// Signals the helper process that `parent` has started. True if there was one.
bool signal_helper(pid_t parent, int number) {
  const std::string relation = cat(") S ", parent, " ");
  for (const pid_t each : processes_that_run("troupe-sandbox"))
    if (read_proc_file(cat("/proc/", each, "/stat")).find(relation) != std::string::npos)
      return ::kill(each, number) == 0;
  return false;
}

class RewardFailures : public SystemRuns {
 protected:
  RewardFailures() {
    fs::create_directories(path("program"));
    std::ofstream(script()) << reward_script;
    fs::permissions(path("program"), fs::perms(0755));
    fs::permissions(script(), fs::perms(0644));
  }
  std::string script() const { return path("program") + "/reward.sh"; }
  void set(const char* state, bool on) const {
    const std::string file = path("program") + "/" + state;
    if (on)
      std::ofstream(file) << state;
    else
      fs::remove(file);
  }
  std::string settings(const std::string& more, const std::string& rule = "") const {
    return cat("--set 'reward=[{rule: command, run: [sh, ", script(), ", ", path("program"),
               "], workers: 2, read: [", path("program"), "]", rule,
               "}]' --set train.schedule=constant --set train.save_every=5 --set "
               "train.steps=12 ",
               more);
  }
  std::string in_groups(const std::string& output, const std::string& more) const {
    value_or_throw(write_file_durably(
        path("cluster.yaml"),
        "groups: [{role: policy}, {role: reference}, {role: rollout}, {role: verifier}]"));
    return cat("launch --cluster '", path("cluster.yaml"), "' -- ",
               arguments("grpo", output, more));
  }
  // The run with its reward program down after some steps, then the same command.
  void expect_repeats(const std::string& arguments, const std::string& output) const {
    {
      Child child(command(arguments), log());
      ASSERT_TRUE(child.until([&] { return steps_written(output) >= 3; }));
      set("down", true);
      EXPECT_EQ(child.wait(), 11) << read_file(log()).value_or("");
    }
    const std::string said = read_file(log()).value_or("");
    EXPECT_THAT(said, HasSubstr("the reward program failed on "));
    EXPECT_THAT(said, HasSubstr("run the same command again"));
    set("down", false);
    run(arguments);
    EXPECT_THAT(read_file(path(output) + "/metrics.jsonl").value_or(""),
                Not(HasSubstr("\"reward\":null")));
  }
  std::string worker() const { return std::string("sh\0", 3) + script(); }
  // Kills a reward worker after every other step, five times.
  void run_with_kills(const std::string& arguments, const std::string& output) const {
    Child child(command(arguments), log());
    for (std::size_t kills = 0; kills < 5; ++kills) {
      ASSERT_TRUE(child.until([&] { return steps_written(output) >= 2 * kills + 1; }));
      ASSERT_TRUE(child.until([&] {
        const auto found = processes_that_run(worker());
        return !found.empty() && ::kill(found.front(), SIGKILL) == 0;
      }));
    }
    EXPECT_EQ(child.wait(), 0) << read_file(log()).value_or("");
  }
};

constexpr const char* pinned = "--set async.mode=pinned --set async.eta=1 ";
constexpr const char* long_run = "--set train.steps=24 ";  // outlasts several kills

TEST_F(RewardFailures, EndTheRunBeforeTheBatchAndTheSameCommandRepeatsIt) {
  for (const std::string algorithm : {"grpo", "ppo"})
    for (const std::string mode : {"", pinned}) {
      const std::string whole = cat(algorithm, "-whole", mode.size()),
                        down = cat(algorithm, "-down", mode.size());
      run(arguments(algorithm, whole, settings(mode)));
      expect_repeats(arguments(algorithm, down, settings(mode)), down);
      expect_same_bytes(whole, down);
    }
}

TEST_F(RewardFailures, EndARunWithFreeRolloutsToo) {
  expect_repeats(arguments("grpo", "free", settings("--set async.mode=free --set async.eta=1 ")),
                 "free");
}

TEST_F(RewardFailures, OfAVerifierGroupEndTheLaunch) {
  run(arguments("grpo", "whole", settings(pinned)));
  expect_repeats(in_groups("down", settings(pinned)), "down");
  expect_same_bytes("whole", "down");
}

TEST_F(RewardFailures, KilledWorkersLeaveTheWeights) {
  run(arguments("grpo", "whole", settings(cat(pinned, long_run))));
  run_with_kills(arguments("grpo", "killed", settings(cat(pinned, long_run))), "killed");
  expect_same_bytes("whole", "killed");
  run_with_kills(in_groups("groups", settings(cat(pinned, long_run))), "groups");
  expect_same_bytes("whole", "groups");
}

TEST_F(RewardFailures, AKilledHelperLeavesTheWeights) {
  run(arguments("ppo", "whole", settings(long_run)));
  const std::string arguments_of_run = arguments("ppo", "killed", settings(long_run));
  Child child(command(arguments_of_run), log());
  for (std::size_t kills = 0; kills < 3; ++kills) {
    ASSERT_TRUE(child.until([&] { return steps_written("killed") >= 2 * kills + 1; }));
    ASSERT_TRUE(child.until([&] { return signal_helper(child.pid(), SIGKILL); }));
  }
  EXPECT_EQ(child.wait(), 0) << read_file(log()).value_or("");
  expect_same_bytes("whole", "killed");
}

// The helper is found to be stopped; the step ends, and with it the run.
TEST_F(RewardFailures, AStoppedHelperDoesNotHoldUpTheEnd) {
  const auto begin = std::chrono::steady_clock::now();
  Child child(command(arguments("grpo", "out", settings(""))), log());
  ASSERT_TRUE(child.until([&] { return steps_written("out") >= 2; }));
  ASSERT_TRUE(child.until([&] { return signal_helper(child.pid(), SIGSTOP); }));
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(), 130) << read_file(log()).value_or("");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(10));
  EXPECT_TRUE(processes_that_run(worker()).empty());
}

TEST_F(RewardFailures, OfTheTextAloneDoNotEndARun) {
  set("slow", true);
  run(arguments("grpo", "out",
                settings("--set train.steps=3 --set rollout.max_new_tokens=24 ",
                         ", timeout: 0.5, startup: 20")));
  const std::string metrics = read_file(path("out") + "/metrics.jsonl").value_or("");
  EXPECT_THAT(metrics, HasSubstr("\"rewards/failed/timeout\":"));
}

TEST_F(RewardFailures, AreAllowedByTheKey) {
  const std::string some = settings("--set train.steps=6 --set rollout.max_reward_failures=1 ");
  Child child(command(arguments("grpo", "out", some)), log());
  ASSERT_TRUE(child.until([&] { return steps_written("out") >= 2; }));
  set("down", true);
  EXPECT_EQ(child.wait(), 0) << read_file(log()).value_or("");
  EXPECT_THAT(read_file(path("out") + "/metrics.jsonl").value_or(""),
              HasSubstr("\"rewards/failed/crash\":"));
}

}  // namespace
}  // namespace troupe::test

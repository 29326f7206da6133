// A run as groups of processes: the same bits as in one process. If any process is killed, the run
// stops at once, leaves no process, and can be resumed.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "engine/base/files/file.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "tests/system/child.h"
#include "tests/system/processes.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

constexpr int process_died = 11;
constexpr const char* steps =
    "--set train.steps=12 --set train.save_every=2 --set train.warmup_steps=3 ";
constexpr auto generous =
    std::chrono::seconds(8);  // 3 s are promised on a machine that has nothing else to do

class Cluster : public SystemRuns {
 protected:
  Cluster() {
    write(
        "groups: [{role: policy}, {role: reference}, {role: rollout, count: 2}, {role: verifier}]");
  }

  void write(const std::string& groups) {
    value_or_throw(write_file_durably(path("cluster.yaml"), groups));
  }
  std::string launched(const std::string& output) const {
    return cat("launch --cluster '", path("cluster.yaml"), "' -- ",
               arguments("grpo", output, steps));
  }
  std::string alone(const std::string& output, const std::string& more = "") const {
    return arguments("grpo", output, steps + more);
  }
  std::string marked(const std::string& output) const {
    return cat("env ", mark_, " ", command(launched(output)));
  }

  std::vector<Process> alive() const { return processes_with(mark_); }
  /// The process id of a node, from its log.
  pid_t process_of(const std::string& output, const std::string& node) const {
    const std::string text = read_file(path(cat(output, "/logs/", node, ".log"))).value_or("");
    const std::string before = node + ": process ";
    const auto at = text.rfind(before);
    return at == std::string::npos
               ? 0
               : static_cast<pid_t>(std::strtol(text.c_str() + at + before.size(), nullptr, 10));
  }
  /// Waits until no process with our mark is alive.
  bool nobody_left() const {
    const auto until = steady_clock::now() + generous;
    while (!alive().empty() && steady_clock::now() < until) std::this_thread::yield();
    return alive().empty();
  }
  std::string said() const { return read_file(log()).value_or(""); }

  const std::string mark_ =
      cat("TROUPE_TEST_MARK=", ::getpid(), "-", std::filesystem::path(folder_).filename().string());
};

TEST_F(Cluster, HasTheBitsOfOneProcess) {
  run(alone("one"));
  run(launched("cluster"));
  expect_same_bytes("one", "cluster");
  EXPECT_TRUE(nobody_left());
  for (const char* node :
       {"controller", "policy", "reference", "rollout-0", "rollout-1", "verifier"})
    EXPECT_TRUE(std::filesystem::exists(path(cat("cluster/logs/", node, ".log")))) << node;
}

TEST_F(Cluster, WithAPolicyOfTwoRanksHasTheBitsOfTwoThreads) {
  run(alone("threads", "--set parallel.tp=2"));
  write(
      "groups: [{role: policy, parallel: {tp: 2}}, {role: reference}, {role: rollout, count: 2}, "
      "{role: verifier}]");
  run(launched("cluster"));
  expect_same_bytes("threads", "cluster");
}

TEST_F(Cluster, WithAPolicyOfTwoStagesHasTheBitsOfTwoThreads) {
  run(alone("threads", "--set parallel.pp=2"));
  write(
      "groups: [{role: policy, parallel: {pp: 2}}, {role: reference}, {role: rollout, count: 2}, "
      "{role: verifier}]");
  run(launched("cluster"));
  expect_same_bytes("threads", "cluster");
}

TEST_F(Cluster, WithAContextOfTwoRanksHasTheBitsOfTwoThreads) {
  run(alone("threads", "--set parallel.cp=2 --set parallel.zero=1"));
  write(
      "groups: [{role: policy, parallel: {cp: 2, zero: 1}}, {role: reference}, {role: rollout, "
      "count: 2}, {role: verifier}]");
  run(launched("cluster"));
  expect_same_bytes("threads", "cluster");
}

// A policy and a critic with keys of their own; the critic's grid changes no loss of the policy.
TEST_F(Cluster, ACriticHasItsOwnKeysOfParallel) {
  const auto ppo = [&](const std::string& output) {
    return arguments("ppo", output,
                     "--set train.steps=4 --set train.max_grad_norm=0 --set critic.max_grad_norm=0 "
                     "--set train.micro_batch_tokens=64");
  };
  run(ppo("one"));
  write(R"(groups:
  - {role: policy, parallel: {pp: 2, vpp: 2}}
  - {role: critic, parallel: {pp: 2, layers: [3, 2], noop_layers: [0]}}
  - {role: reference}
  - {role: rollout}
  - {role: verifier})");
  run(cat("launch --cluster '", path("cluster.yaml"), "' -- ", ppo("cluster")));
  EXPECT_EQ(losses("cluster"), losses("one"));
  EXPECT_TRUE(value_or_throw(read_file(path("cluster/latest/model.safetensors"))) ==
              value_or_throw(read_file(path("one/latest/model.safetensors"))));
}

// Without replacement; faults.py has the runs with it.
TEST_F(Cluster, IfAnyProcessIsKilledTheRunStopsAndResumesToTheSameBytes) {
  run(alone("whole"));
  const std::vector<std::string> nodes{"policy", "reference", "rollout-0", "rollout-1", "verifier"};
  int kills = 0;
  for (std::uint64_t life = 0; life < nodes.size(); ++life) {
    Child child(cat(marked("killed"), " --set recovery.restarts=0"), log());
    const std::string before =
        read_file(path(cat("killed/logs/", nodes[life], ".log"))).value_or("");
    const auto come = [&] {
      return read_file(path(cat("killed/logs/", nodes[life], ".log"))).value_or("").size() >
             before.size();
    };
    ASSERT_TRUE(child.until(come)) << said();
    const std::size_t written = steps_written("killed") + uniform_below(3, 9, 0, life);
    child.until([&] { return steps_written("killed") >= written; });
    const auto moment =
        steady_clock::now() + std::chrono::microseconds(uniform_below(20000, 9, 1, life));
    child.until([&] { return steady_clock::now() >= moment; });
    if (kill(process_of("killed", nodes[life]), SIGKILL) != 0) break;  // the run is at its end
    const auto killed = steady_clock::now();
    const int code = child.wait();
    if (code == 0) break;
    ++kills;
    EXPECT_EQ(code, process_died) << said();
    EXPECT_LT(steady_clock::now() - killed, generous);
    EXPECT_THAT(said(), HasSubstr(nodes[life] + " (process "));
    EXPECT_THAT(said(), HasSubstr("was killed by signal 9 (Killed) at "));
    EXPECT_TRUE(nobody_left()) << "after " << nodes[life];
  }
  EXPECT_GE(kills, 3);
  run(launched("killed"));
  expect_same_bytes("whole", "killed");
}

TEST_F(Cluster, KillingLaunchKillsAllProcesses) {
  run(alone("whole"));
  Child child(marked("killed"), log());
  ASSERT_TRUE(child.until([&] { return steps_written("killed") >= 3; })) << said();
  EXPECT_GE(alive().size(), 6u);
  child.signal(SIGKILL);
  EXPECT_EQ(child.wait(), -SIGKILL);
  EXPECT_TRUE(nobody_left());
  run(launched("killed"));
  expect_same_bytes("whole", "killed");
}

TEST_F(Cluster, AnyProcessOfAGroupOfSeveralMayBeKilled) {
  write(
      "groups: [{role: policy, parallel: {tp: 2}}, {role: rollout}, {role: verifier}, {role: "
      "reference}]");
  // mpirun, then its ranks.
  for (const int which : {0, 1, 2}) {
    Child child(marked("killed"), log());
    const std::size_t before = steps_written("killed");
    ASSERT_TRUE(child.until([&] {
      return steps_written("killed") != before && steps_written("killed") > 0;
    })) << said();
    const auto all = alive();
    const auto mpirun = std::ranges::find_if(
        all, [](const Process& p) { return p.command.find("mpirun") != std::string::npos; });
    ASSERT_NE(mpirun, all.end());
    std::vector<pid_t> of_group{mpirun->pid};
    for (const Process& each : all)
      if (each.parent == mpirun->pid) of_group.push_back(each.pid);
    ASSERT_EQ(of_group.size(), 3u);
    kill(of_group[static_cast<std::size_t>(which)], SIGKILL);
    const auto killed = steady_clock::now();
    EXPECT_EQ(child.wait(), process_died) << said();
    EXPECT_LT(steady_clock::now() - killed, generous);
    EXPECT_THAT(said(), HasSubstr("policy (process "));
    EXPECT_TRUE(nobody_left());
  }
}

TEST_F(Cluster, ASignalSavesACheckpointAndExits) {
  run(alone("whole"));
  Child child(marked("stopped"), log());
  ASSERT_TRUE(child.until([&] { return steps_written("stopped") >= 3; })) << said();
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(), 130) << said();
  EXPECT_TRUE(nobody_left());
  EXPECT_THAT(said(), testing::Not(HasSubstr("were killed")));
  EXPECT_TRUE(std::filesystem::exists(path("stopped/latest")));
  run(launched("stopped"));
  expect_same_bytes("whole", "stopped");
}

// The run ends when it has cancelled the samples in flight; it does not need those of a rollout
// that no longer answers.
TEST_F(Cluster, AGroupThatIsLostAfterTheLastStepIsAWarning) {
  constexpr std::size_t steps_of_run = 12;
  Child child(cat(marked("complete"), " --set async.mode=free --set async.eta=3"), log());
  ASSERT_TRUE(child.until([&] { return steps_written("complete") == steps_of_run; })) << said();
  const pid_t rollout = process_of("complete", "rollout-1");
  ASSERT_NE(rollout, 0);
  ::kill(rollout, SIGSTOP);
  EXPECT_EQ(child.wait(), 0) << said();
  EXPECT_TRUE(nobody_left());
  EXPECT_TRUE(std::filesystem::exists(path("complete/checkpoint-12")));
}

TEST_F(Cluster, AGroupThatCannotStartReportsWhy) {
  std::filesystem::create_directory(path("empty"));
  std::filesystem::copy_file(launch::data("models/digit-completion/config.json"),
                             path("empty/config.json"));
  // launch itself checks the headers of files; the group that loads them misses a tensor.
  const std::string no_tensors = std::string("\x02\0\0\0\0\0\0\0", 8) + "{}";
  value_or_throw(write_file_durably(path("empty/model.safetensors"), no_tensors));
  const launch::ProgramOutput got =
      launch::run_program(launched("none") + cat(" --set grpo.reference='", path("empty"), "'"));
  EXPECT_EQ(got.code, process_died);
  EXPECT_THAT(got.err, HasSubstr("reference (process "));
  EXPECT_THAT(got.err, HasSubstr("exited with code 5 at "));
  EXPECT_THAT(got.err, HasSubstr("last output: \"troupe: " + path("empty")));
  EXPECT_THAT(got.err, HasSubstr("There is no checkpoint yet"));
  EXPECT_TRUE(nobody_left());
}

}  // namespace
}  // namespace troupe::test

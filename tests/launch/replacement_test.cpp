// Processes of a launch that are replaced: which, how often, and what becomes of the former ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "launch/cluster/replacement.h"
#include "launch/cluster/supervisor.h"
#include "launch/run/exit_code.h"
#include "tests/launch/program.h"

namespace troupe::launch::replacement_test {
namespace {

using testing::HasSubstr;

config::RunConfig grpo(double beta = 0.1) {
  config::RunConfig config;
  config.algorithm = "grpo";
  config.model = "M";
  config.output = "O";
  config.data.paths = {"D"};
  config.grpo.loss.beta = beta;
  config.reward = {{"exact_match", 1, "", {}}};
  return config;
}

config::RunConfig of(const std::string& algorithm) {
  config::RunConfig config = grpo(0);
  config.algorithm = algorithm;
  return config;
}

std::vector<std::string> shell(const std::string& script) {
  return {"/bin/bash", "-c", script};
}

class ReplacingSupervisor : public testing::Test {
 protected:
  ~ReplacingSupervisor() override { std::filesystem::remove_all(folder_); }
  bool replace(cluster::ExitedProcess& lost) {
    lost_.push_back(lost);
    if (lost.incarnation > 2) {
      lost.ends_with = run::exit_restarts;
      lost.advice = "There were too many.";
      return false;
    }
    supervisor_.start(lost.node, shell(next_), "x\n", lost.incarnation + 1);
    return true;
  }
  std::string folder_ = scratch_folder();
  std::string next_ = "cat >/dev/null";
  std::vector<cluster::ExitedProcess> lost_;  // of the watcher's thread until it has ended
  std::atomic<int> reported_ = 0;
  cluster::Supervisor supervisor_{
      {.output = folder_,
       .on_exit = [this] { ++reported_; },
       .replace = [this](cluster::ExitedProcess& lost) { return replace(lost); },
       .disconnect_timeout = std::chrono::milliseconds(20),
       .fence_timeout = std::chrono::milliseconds(50)}};
};

TEST_F(ReplacingSupervisor, AProcessThatExitsAgainAndAgainEndsTheRunWithTheReason) {
  next_ = "read line; exit 5";
  supervisor_.start("a", shell(next_), "x\n");
  supervisor_.start("b", shell("cat >/dev/null"), "x\n");
  supervisor_.watch();
  EXPECT_TRUE(supervisor_.exit_within(std::chrono::seconds(20)));
  const auto exits = supervisor_.kill_all();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].incarnation, 3u);
  EXPECT_EQ(cluster::exit_code_of(exits), run::exit_restarts);
  EXPECT_THAT(cluster::describe(exits, folder_), HasSubstr("There were too many."));
  EXPECT_EQ(lost_.size(), 3u);
  EXPECT_EQ(reported_, 1);
}

TEST_F(ReplacingSupervisor, AProcessThatDoesNotAnswerIsReplacedAndKilledLater) {
  supervisor_.start("a", shell("cat >/dev/null"), "x\n");
  supervisor_.watch();
  const pid_t former = supervisor_.processes().at(0).pid;
  supervisor_.disconnected("a", "was lost: it sent nothing");
  const auto only_the_successor = [&] {
    const auto all = supervisor_.processes();
    return all.size() == 1 && all[0].pid != former && all[0].alive;
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!only_the_successor() && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  EXPECT_TRUE(only_the_successor()) << "the former one is killed after its time";
  supervisor_.joined("a", 2);
  EXPECT_EQ(reported_, 0);
  EXPECT_TRUE(supervisor_.shut_down(std::chrono::seconds(20)));
  EXPECT_TRUE(supervisor_.kill_all().empty());
  ASSERT_EQ(lost_.size(), 1u);
  EXPECT_TRUE(lost_[0].running);
  EXPECT_EQ(lost_[0].how, "was lost: it sent nothing");
}

TEST(RestartBudgets, CountWithinAWindowForEachRole) {
  using recipes::Role;
  const cluster::RestartBudget::Time start{};
  const auto at = [&](int seconds) { return start + std::chrono::seconds(seconds); };
  cluster::RestartBudget budget(2, std::chrono::seconds(60));
  EXPECT_TRUE(budget.take(Role::rollout, at(0)));
  EXPECT_TRUE(budget.take(Role::rollout, at(30)));
  EXPECT_FALSE(budget.take(Role::rollout, at(60)));
  EXPECT_TRUE(budget.take(Role::verifier, at(60)));
  EXPECT_TRUE(budget.take(Role::rollout, at(61))) << "one has left the window";
  EXPECT_FALSE(budget.take(Role::rollout, at(90)));
  EXPECT_TRUE(budget.take(Role::rollout, at(91)));
}

TEST(ReplacedNodes, AreThoseWhoseWorkAnotherProcessCanDo) {
  const auto groups = cluster::parse_cluster(
      "groups: [{role: policy}, {role: reference}, {role: rollout, count: 2}, {role: verifier}]",
      "cluster.yaml", grpo());
  ASSERT_TRUE(groups);
  const auto nodes = cluster::nodes_of(groups->groups);
  config::RunConfig config = grpo();
  EXPECT_THAT(cluster::replaced_nodes(config, nodes),
              testing::ElementsAre("reference", "rollout-0", "rollout-1", "verifier"));
  config.rollout.parity_sample = 0.1;
  EXPECT_THAT(cluster::replaced_nodes(config, nodes),
              testing::ElementsAre("reference", "verifier"));
  config = grpo();
  config.recovery.restarts = 0;
  EXPECT_THAT(cluster::replaced_nodes(config, nodes), testing::IsEmpty());
  config = of("dpo");
  config.dpo.following.every = 5;
  EXPECT_THAT(cluster::replaced_nodes(config, nodes), testing::Contains("rollout-0"));
  EXPECT_THAT(cluster::replaced_nodes(config, nodes), testing::Not(testing::Contains("reference")));
}

}  // namespace
}  // namespace troupe::launch::replacement_test

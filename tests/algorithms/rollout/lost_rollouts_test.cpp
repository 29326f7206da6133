// Rollouts that are lost while they sample, at any request, and replaced a while later: every
// number is that of a run in which nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>

#include "actors/roles/leases.h"
#include "algorithms/grpo.h"
#include "tests/algorithms/rollout/disk.h"

namespace troupe::algorithms::lost_rollouts_test {
namespace {

using actors::roles::Leases;
using transports::Body;
using transports::Frame;
using transports::Kind;

/// Connects "home", "away" and rollouts, of which each may be lost and replaced. As a hub does, it
/// answers the open asks of a process that is lost with errors, after the event.
class Network {
 public:
  struct Process {
    std::uint64_t incarnation = 1;
    bool lost = false;
    transports::Receiver receive;
    std::map<std::uint64_t, Frame> asked;
  };
  std::function<void(const std::string& node)> on_generate;  ///< before it is delivered

  void join(const std::string& node, std::uint64_t incarnation, transports::Receiver receive) {
    Process& process = processes_[node];
    process.incarnation = incarnation;
    process.lost = false;
    process.receive = std::move(receive);
  }
  void leave(const std::string& node, std::uint64_t incarnation) {
    Process& process = processes_[node];
    if (process.incarnation == incarnation) process.receive = nullptr;
  }
  Result<> send(Frame frame, std::uint64_t from) {
    if (processes_[frame.from.node].incarnation != from || processes_[frame.from.node].lost)
      return {};  // of a process that was lost
    Process& to = processes_[frame.to.node];
    if (to.lost || (frame.to.incarnation != 0 && frame.to.incarnation != to.incarnation))
      return fail(Errc::closed, "lost");
    if (frame.kind == Kind::request) {
      Frame head = {frame.to, frame.from, frame.id, frame.kind, frame.type, {}};
      to.asked.emplace(frame.id, std::move(head));
      if (frame.type == protocol::Generate::name && on_generate) on_generate(frame.to.node);
      if (processes_[frame.to.node].lost) return {};
    } else {
      processes_[frame.from.node].asked.erase(frame.id);
    }
    if (to.receive) to.receive(std::move(frame));
    return {};
  }
  void lose(const std::string& node) {
    Process& process = processes_[node];
    process.lost = true;
    for (auto& [id, ask] : std::exchange(process.asked, {}))
      processes_[ask.from.node].receive(
          {ask.from, ask.to, id, Kind::error, ask.type, Body::of(Error{Errc::closed, "lost"})});
  }
  std::uint64_t incarnation(const std::string& node) { return processes_[node].incarnation; }

 private:
  std::map<std::string, Process> processes_;
};

/// The network as one process sees it.
class Port final : public transports::Transport {
 public:
  Port(Network& network, std::uint64_t incarnation)
      : network_(network), incarnation_(incarnation) {}
  std::uint64_t attach(const std::string& node, transports::Receiver receive) override {
    network_.join(node, incarnation_, std::move(receive));
    return 1;
  }
  void detach(const std::string& node) override { network_.leave(node, incarnation_); }
  Result<> send(Frame frame) override { return network_.send(std::move(frame), incarnation_); }

 private:
  Network& network_;
  std::uint64_t incarnation_;
};

struct RolloutProcess {
  RolloutProcess(actors::Scheduler& scheduler, Network& network, const std::string& name,
                 std::uint64_t incarnation)
      : port(network, incarnation), node(name, scheduler, port) {
    node.spawn("rollout", FakeRollout{}, {.executor = cat("rollout-", incarnation)});
  }
  Port port;
  actors::Node node;
};

struct Options {
  AsyncConfig async;
  int rollouts = 2;
  std::set<int> lose_at;  ///< numbers of requests for samples, counted from 0
  bool all_at_once = false;
  std::chrono::milliseconds absence{30};
  std::uint64_t seed = 0;
};

struct Ran {
  std::vector<std::string> lines;
  int requests = 0;
  std::uint64_t losses = 0;
};

Ran run(const Options& options) {
  actors::VirtualScheduler scheduler(options.seed);
  Network network;
  std::list<RolloutProcess> processes;
  Port port(network, 1);
  Disk disk;
  Ran out;
  std::vector<std::string> events;
  Recovery recovery({});
  Stage stage(scheduler, port, 0);
  for (int i = 0; i < options.rollouts; ++i) {
    const std::string name = cat("rollout-", i);
    processes.emplace_back(scheduler, network, name, 1);
    stage.cluster.rollouts.push_back(stage.home.ref({name, "rollout", 1}, FakeRollout::Handled{}));
  }
  stage.cluster.recovery = &recovery;
  const auto lose = [&](const std::string& node) {
    const std::uint64_t number = network.incarnation(node);
    stage.home.control().post([&, node, number] { recovery.lost(node, number); });
    network.lose(node);
    scheduler.later(options.absence, [&, node, number] {
      processes.emplace_back(scheduler, network, node, number + 1);
      stage.home.control().post([&, node, number] { recovery.joined(node, number + 1); });
    });
  };
  network.on_generate = [&](const std::string& node) {
    if (!options.lose_at.contains(out.requests++)) return;
    if (!options.all_at_once) return lose(node);
    for (int i = 0; i < options.rollouts; ++i) lose(cat("rollout-", i));
  };
  TrainingPlan plan = plan_of(run_steps);
  auto data = many_prompts();
  restore(disk, stage, plan, data, events);
  GrpoConfig config;
  config.group = 4;
  config.loss.beta = 0.1;
  config.recompute_old = options.async.stale();
  config.sampling.max_new_tokens = 8;
  config.async = options.async;
  config.logged_completions = 0;
  const HeldOutPrompts held_out;
  actors::run(stage.home, grpo(stage.cluster, data, plan, config, held_out));
  out.lines = stage.journal.lines;
  for (int i = 0; i < options.rollouts; ++i) out.losses += recovery.losses(cat("rollout-", i));
  return out;
}

std::vector<AsyncConfig> modes() {
  return {{}, {.mode = AsyncMode::pinned, .eta = 0}, {.mode = AsyncMode::pinned, .eta = 2}};
}

TEST(LostRollouts, AtAnyRequestChangeNoNumber) {
  for (const AsyncConfig& async : modes()) {
    const Ran calm = run({.async = async});
    ASSERT_EQ(calm.lines.size(), static_cast<std::size_t>(run_steps));
    for (int at = 0; at < calm.requests; ++at) {
      const Ran disturbed = run({.async = async, .lose_at = {at}});
      EXPECT_EQ(disturbed.lines, calm.lines) << "lost at request " << at;
      EXPECT_EQ(disturbed.losses, 1u);
    }
  }
}

TEST(LostRollouts, OfWhichNoneIsLeftAreWaitedFor) {
  for (const AsyncConfig& async : modes()) {
    for (const int rollouts : {1, 3}) {
      const auto calm = run({.async = async, .rollouts = rollouts}).lines;
      for (const int at : {0, 1, 7, 11}) {
        const Ran disturbed = run({.async = async,
                                   .rollouts = rollouts,
                                   .lose_at = {at},
                                   .all_at_once = true,
                                   .absence = std::chrono::seconds(2)});
        EXPECT_EQ(disturbed.lines, calm) << rollouts << " rollouts, lost at request " << at;
        EXPECT_EQ(disturbed.losses, static_cast<std::uint64_t>(rollouts));
      }
    }
  }
}

TEST(LostRollouts, AgainAndAgainChangeNoNumber) {
  for (const AsyncConfig& async : modes()) {
    const auto calm = run({.async = async}).lines;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Ran disturbed = run({.async = async,
                                 .rollouts = 3,
                                 .lose_at = {1, 2, 3, 5, 8, 13, 14, 15, 21, 22},
                                 .absence = std::chrono::milliseconds(1 + 5 * seed),
                                 .seed = seed});
      EXPECT_EQ(disturbed.lines, calm) << "seed " << seed;
      EXPECT_GE(disturbed.losses, 5u);
    }
  }
}

TEST(LostRollouts, WithFreeVersionsEveryBatchIsTrained) {
  const AsyncConfig async{.mode = AsyncMode::free, .eta = 2};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Ran disturbed = run({.async = async, .lose_at = {0, 3, 4, 9, 17}, .seed = seed});
    EXPECT_EQ(disturbed.lines.size(), static_cast<std::size_t>(run_steps));
    EXPECT_GE(disturbed.losses, 3u);
  }
}

protocol::Completion sample(std::uint64_t id, std::int32_t token) {
  protocol::Completion completion;
  completion.sample_id = id;
  completion.ids = {token};
  completion.logp = {-1.0f};
  completion.versions = {{0, 1}};
  return completion;
}

TEST(RecoveryOfSamples, ALateResultMustBeTheOneThatWasAccepted) {
  for (const bool late_first : {false, true}) {
    for (const std::int32_t token : {7, 8}) {
      std::vector<std::string> found;
      Recovery recovery({.on_divergence = [&](const auto& text) { found.push_back(text); }});
      recovery.lease("rollout-0", {{{1}, 40, {}}, {{1}, 41, {}}});
      recovery.lease("rollout-1", {{{1}, 42, {}}});
      EXPECT_EQ(recovery.leased("rollout-0"), 2u);
      recovery.lost("rollout-0", 1);
      EXPECT_EQ(recovery.leased("rollout-0"), 0u);
      EXPECT_FALSE(recovery.present("rollout-0"));
      EXPECT_EQ(recovery.name("rollout-0"), "rollout-0#2");
      recovery.lease("rollout-1", {{{1}, 40, {}}});
      const auto late = [&] { recovery.late({sample(40, token)}); };
      if (late_first) late();
      recovery.arrived("rollout-1", {sample(40, 7), sample(42, 7)});
      if (!late_first) late();
      ASSERT_EQ(found.size(), token == 7 ? 0u : 1u);
      if (token == 7) continue;
      EXPECT_THAT(found[0], AllOf(HasSubstr("sample 40 has two results: rollout-1#1 returned"),
                                  HasSubstr("rollout-0#1, which was taken for lost")));
    }
  }
}

TEST(RecoveryOfSamples, AllThatWaitLearnOfTheEnd) {
  Recovery recovery({});
  recovery.lost("rollout-0", 1);
  recovery.lost("rollout-0", 1);  // the event comes from two sides
  EXPECT_EQ(recovery.losses("rollout-0"), 1u);
  recovery.joined("rollout-0", 1);  // late
  EXPECT_FALSE(recovery.present("rollout-0"));
  recovery.joined("rollout-0", 2);
  EXPECT_TRUE(recovery.present("rollout-0"));
  EXPECT_NO_THROW(recovery.check_open());
  recovery.end({Errc::cancelled, "the run was interrupted"});
  EXPECT_THROW(recovery.check_open(), Failure);
}

TEST(LeasesOfSamples, AreOfOneHolderUntilTheyEnd) {
  Leases leases;
  const Leases::Time now{};
  leases.grant(1, {"a", "t", now + std::chrono::seconds(5)});
  leases.grant(2, {"a", "u", Leases::forever});
  EXPECT_TRUE(leases.held_by(1, "a", "t", now));
  EXPECT_FALSE(leases.held_by(1, "a", "u", now));
  EXPECT_FALSE(leases.held_by(1, "b", "t", now));
  EXPECT_FALSE(leases.held_by(3, "a", "t", now));
  EXPECT_EQ(leases.count("a", now), 2u);
  const auto later = now + std::chrono::seconds(5);
  EXPECT_FALSE(leases.held(1, later));
  EXPECT_TRUE(leases.find(1)) << "its holder is known";
  EXPECT_EQ(leases.count("a", later), 1u);
  leases.grant(1, {"b", "v", Leases::forever});
  EXPECT_FALSE(leases.held_by(1, "a", "t", now));
  EXPECT_THAT(leases.revoke("a"), ElementsAre(2u));
  EXPECT_TRUE(leases.held(1, later));
  leases.end(1);
  EXPECT_FALSE(leases.find(1));
}

}  // namespace
}  // namespace troupe::algorithms::lost_rollouts_test

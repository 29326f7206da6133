// Pinned runs over threads and over sockets, with a random delay before and after every message
// that an actor handles: the same numbers for any delays and any number of rollouts. The seeds are
// few here; the environment variable TROUPE_DELAY_SEEDS asks for more (tests/long.sh).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "algorithms/grpo.h"
#include "tests/algorithms/stage.h"
#include "tests/transports/star.h"

namespace troupe::algorithms::delays_test {
namespace {

constexpr std::int64_t run_steps = 8;

/// An actor that takes any time to receive a message and to answer it.
template <class Actor>
struct Delayed {
  using Handled = typename Actor::Handled;
  Actor actor;
  std::mt19937_64 random;

  void pause() {
    if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
  }
  template <class M>
  auto on(M message) -> decltype(actor.on(std::move(message))) {
    pause();
    if constexpr (std::is_void_v<decltype(actor.on(std::move(message)))>) {
      actor.on(std::move(message));
      pause();
    } else {
      auto answer = actor.on(std::move(message));
      pause();
      return answer;
    }
  }
};

struct Options {
  std::int64_t eta = 0;
  int rollouts = 1;
  std::uint64_t seed = 1;
  bool dynamic = false;
};

/// Records the metrics, and the states that the rollout side reports.
class Watching final : public Journal {
 public:
  explicit Watching(std::int64_t eta) : eta_(eta) {}
  void begin(std::int64_t, std::int64_t) override {}
  void record(std::int64_t step, const Metrics& metrics) override {
    std::string line = cat("step ", step);
    for (const auto& [name, value] : metrics) {
      line += cat(' ', name, '=', value);
      if (name == "staleness/max") {
        EXPECT_LE(value, static_cast<double>(eta_));
      }
    }
    lines.push_back(line);
  }
  void sample(std::int64_t, const Sample&) override {}
  void status(std::string_view) override {}
  void overlap(const Overlap& now) override {
    EXPECT_GE(now.queue, 0);
    EXPECT_LE(now.queue, eta_ + 1) << "complete batches are bounded by eta";
    EXPECT_GE(now.in_flight, 0);
    EXPECT_LE(now.in_flight, 2 * samples_per_batch) << "the default of async.in_flight";
    EXPECT_GE(now.idle_rollouts, 0);
    EXPECT_LE(now.idle_rollouts, now.rollouts);
  }
  static constexpr std::int64_t samples_per_batch = 12;
  std::vector<std::string> lines;

 private:
  std::int64_t eta_;
};

/// The node on which an actor of this name is spawned.
using NodeOf = std::function<actors::Node&(const std::string& name)>;

std::vector<std::string> lines_of(const Options& options, actors::Node& home,
                                  const NodeOf& node_of) {
  std::mt19937_64 draws(options.seed);
  const auto spawn = [&]<class Actor>(const std::string& name, Actor actor) {
    auto there = node_of(name).spawn(
        name, Delayed<Actor>{std::move(actor), std::mt19937_64(draws())}, {.executor = name});
    return home.ref(there.address(), typename Actor::Handled{});
  };
  std::vector<std::string> saved;
  Watching journal(options.eta);
  actors::Stop stop;
  Cluster cluster{spawn("policy", FakePolicy{&saved}),
                  spawn("reference", FakeReference{}),
                  {},
                  spawn("verifier", FakeVerifier{}),
                  journal,
                  stop,
                  2};
  for (int i = 0; i < options.rollouts; ++i)
    cluster.rollouts.push_back(spawn(cat("rollout-", i), FakeRollout{}));
  GrpoConfig config;
  config.group = 4;
  config.loss.beta = 0.1;
  config.sampling.max_new_tokens = 8;
  config.async = {.mode = AsyncMode::pinned, .eta = options.eta};
  config.recompute_old = config.async.stale();
  config.dynamic.on = options.dynamic;
  config.logged_completions = 0;
  auto data = prompts();
  const TrainingPlan plan{.steps = run_steps,
                          .learning_rate = 0.01,
                          .schedule = value_or_throw(engine::optim::Schedule::create(
                              engine::optim::ScheduleKind::constant, {.total_steps = run_steps}))};
  actors::run(home, grpo(cluster, data, plan, config));
  return journal.lines;
}

std::vector<std::string> over_threads(const Options& options) {
  actors::ThreadScheduler scheduler;
  transports::Loopback transport;
  actors::Node home("home", scheduler, transport);
  return lines_of(options, home, [&](const auto&) -> actors::Node& { return home; });
}

std::vector<std::string> over_sockets(const Options& options) {
  std::vector<std::string> names{"policy", "reference", "verifier"};
  for (int i = 0; i < options.rollouts; ++i) names.push_back(cat("rollout-", i));
  transports::Star star({.spokes = names});
  actors::ThreadScheduler scheduler;
  actors::Node home("hub", scheduler, *star.hub);
  std::map<std::string, std::unique_ptr<actors::Node>> nodes;
  for (const auto& name : names)
    nodes[name] = std::make_unique<actors::Node>(name, scheduler, *star.spokes[name]);
  star.hub->open();
  for (const auto& name : names) star.spokes[name]->open();
  star.hub_events.wait_for(names.size());
  return lines_of(options, home,
                  [&](const auto& name) -> actors::Node& { return *nodes.at(name); });
}

std::uint64_t seeds() {
  const char* wanted = std::getenv("TROUPE_DELAY_SEEDS");
  return wanted ? std::strtoull(wanted, nullptr, 10) : 1;
}

class Delays : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Eta, Delays, testing::Values(0, 1, 4));

TEST_P(Delays, ChangeNoNumberOfAPinnedRun) {
  const std::int64_t eta = GetParam();
  const auto first = over_threads({.eta = eta});
  ASSERT_EQ(first.size(), static_cast<std::size_t>(run_steps));
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed)
    for (const int rollouts : {1, 2, 7}) {
      const Options options{.eta = eta, .rollouts = rollouts, .seed = seed};
      EXPECT_EQ(over_threads(options), first) << rollouts << " rollouts, seed " << seed;
      EXPECT_EQ(over_sockets(options), first)
          << rollouts << " rollouts in a cluster, seed " << seed;
    }
}

TEST_P(Delays, ChangeNoNumberOfDynamicSampling) {
  const std::int64_t eta = GetParam();
  const auto first = over_threads({.eta = eta, .dynamic = true});
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed)
    EXPECT_EQ(over_sockets({.eta = eta, .rollouts = 2, .seed = seed, .dynamic = true}), first)
        << "seed " << seed;
}

}  // namespace
}  // namespace troupe::algorithms::delays_test

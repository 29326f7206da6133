// Samples that other programs make: they arrive in any parts, and what has arrived is part of a
// checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "algorithms/grpo.h"
#include "tests/algorithms/rollout/disk.h"

namespace troupe::algorithms::external_test {
namespace {

/// A rollout whose samples come from elsewhere: `at_once` for each message, the last ones first.
struct Passing {
  using Handled = FakeRollout::Handled;
  FakeRollout rollout;
  std::size_t at_once;
  std::function<void()> on_message;
  std::vector<std::uint64_t>* received;

  std::vector<protocol::Completion> on(protocol::Generate m) {
    on_message();
    while (m.requests.size() > at_once) m.requests.erase(m.requests.begin());
    auto made = rollout.on(std::move(m));
    for (auto& each : made) {
      received->push_back(each.sample_id);
      each.ids = {each.ids[0], 8, 3};  // with the output of a tool
      each.logp = {each.logp[0], 0, each.logp[1]};
      each.versions = {{rollout.weights.version, 3}};
      each.sampled = {1, 0, 1};
      each.reward = static_cast<double>(each.sample_id % 3);
    }
    return made;
  }
  auto on(protocol::PrepareWeights m) { return rollout.on(std::move(m)); }
  void on(protocol::CommitWeights m) { rollout.on(m); }
  std::uint64_t on(protocol::CancelSamples m) { return rollout.on(std::move(m)); }
};

struct Options {
  AsyncConfig async = {};
  int rollouts = 1;
  std::size_t at_once = 100;
  int stop_at = -1;  ///< message of a rollout at which the run is asked to stop
  std::int64_t save_every = 0;
};

struct Ran {
  std::vector<std::string> lines;
  std::vector<Metrics> records;
  std::vector<std::uint64_t> received;
};

Ran run(const Options& options, Disk& disk) {
  actors::VirtualScheduler scheduler(1);
  transports::Loopback transport;
  Ran out;
  std::vector<std::string> events;
  Stage stage(scheduler, transport, 0);
  int messages = 0;
  for (int i = 0; i < options.rollouts; ++i) {
    Passing actor{{},
                  options.at_once,
                  [&] {
                    if (messages++ == options.stop_at) stage.stop.request();
                  },
                  &out.received};
    auto there = stage.away.spawn(cat("passing", i), std::move(actor), {.executor = cat(i)});
    stage.cluster.rollouts.push_back(stage.home.ref(there.address(), Passing::Handled{}));
  }
  stage.cluster.verifier.reset();
  TrainingPlan plan = plan_of(run_steps, options.save_every);
  auto data = many_prompts();
  restore(disk, stage, plan, data, events);
  GrpoConfig config;
  config.group = 4;
  config.sampling.max_new_tokens = 8;
  config.external = true;
  config.async = options.async;
  config.recompute_old = options.async.stale();
  config.logged_completions = 0;
  actors::run(stage.home, grpo(stage.cluster, data, plan, config));
  out.lines = stage.journal.lines;
  out.records = stage.journal.records;
  return out;
}

std::vector<std::string> lines_of(const Options& options) {
  Disk disk;
  return run(options, disk).lines;
}

TEST(ExternalSamples, ArriveInAnyParts) {
  const auto whole = lines_of({});
  ASSERT_EQ(whole.size(), static_cast<std::size_t>(run_steps));
  Disk disk;
  EXPECT_THAT(run({}, disk).records[0],
              has_metric("reward", testing::DoubleNear(13.0 / 12, 1e-12)));
  for (const int rollouts : {1, 2, 5})
    for (const std::size_t at_once : {1u, 3u, 7u})
      EXPECT_EQ(lines_of({.rollouts = rollouts, .at_once = at_once}), whole)
          << rollouts << " rollouts, " << at_once << " at once";
}

TEST(ExternalSamples, OfAStoppedRunAreNotMadeAgain) {
  Disk undisturbed;
  const auto whole = run({.at_once = 5}, undisturbed);
  for (const std::int64_t save_every : {0, 1}) {
    for (int stop_at = 4; stop_at < 12; ++stop_at) {
      Disk disk;
      const auto first = run({.at_once = 5, .stop_at = stop_at, .save_every = save_every}, disk);
      ASSERT_LT(first.lines.size(), whole.lines.size());
      const auto second = run({.at_once = 5}, disk);
      auto lines = first.lines;
      lines.insert(lines.end(), second.lines.begin(), second.lines.end());
      EXPECT_EQ(lines, whole.lines) << "stopped at message " << stop_at;
      auto received = first.received;
      received.insert(received.end(), second.received.begin(), second.received.end());
      EXPECT_EQ(std::set(received.begin(), received.end()).size(), received.size());
      EXPECT_EQ(received.size(), whole.received.size());
    }
  }
}

TEST(ExternalSamples, AreNeverOlderThanEta) {
  for (const std::int64_t eta : {0, 1, 3}) {
    const auto lines =
        lines_of({.async = {.mode = AsyncMode::free, .eta = eta}, .rollouts = 2, .at_once = 5});
    ASSERT_EQ(lines.size(), static_cast<std::size_t>(run_steps));
    for (const auto& line : lines) {
      const auto at = line.find(" staleness/max=");
      ASSERT_NE(at, std::string::npos);
      EXPECT_LE(line[at + 15] - '0', eta);
    }
  }
}

}  // namespace
}  // namespace troupe::algorithms::external_test

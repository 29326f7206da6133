// Sampling while the policy trains: whatever the delays and the number of rollouts, the versions
// that sample each batch are fixed, and so is every number.
#include "algorithms/rollout/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "algorithms/grpo.h"
#include "algorithms/ppo.h"
#include "tests/algorithms/rollout/disk.h"

namespace troupe::algorithms {
namespace {

/// A rollout that records the version of every request.
struct RecordingRollout {
  using Handled = FakeRollout::Handled;
  FakeRollout rollout;
  std::vector<std::string>* events;
  auto on(protocol::Generate m) {
    events->push_back(
        cat("generate ", m.requests.front().sample_id, " by ", rollout.weights.version));
    return rollout.on(std::move(m));
  }
  auto on(protocol::PrepareWeights m) {
    if (m.weights.version < rollout.weights.version)
      throw Failure({Errc::bad_input, "older weights"});
    return rollout.on(std::move(m));
  }
  void on(protocol::CommitWeights m) { rollout.on(m); }
  std::uint64_t on(protocol::CancelSamples m) { return rollout.on(std::move(m)); }
};

struct Options {
  AsyncConfig async;
  int rollouts = 2;
  std::uint64_t seed = 0;
  std::int64_t steps = run_steps, save_every = 0;
  std::int64_t eval_every = 0;
  bool dynamic = false, remax = false;
};

GrpoConfig config_of(const Options& options) {
  GrpoConfig config;
  config.group = 4;
  config.loss.beta = 0.1;
  config.recompute_old = options.async.stale();
  config.sampling.max_new_tokens = 8;
  config.async = options.async;
  config.dynamic.on = options.dynamic;
  if (options.remax) config.advantage.estimator = Estimator::remax;
  config.logged_completions = 0;
  return config;
}

struct Ran {
  std::vector<std::string> lines, events;
  std::vector<Metrics> records;
};

HeldOutPrompts held_out(const Options& options) {
  HeldOutPrompts prompts;
  if (options.eval_every == 0) return prompts;
  for (int i = 0; i < 3; ++i)
    prompts.rows.push_back({{i + 4, 9}, cat("held out ", i), Json(), Json()});
  prompts.every = options.eval_every;
  return prompts;
}

// Runs from the newest checkpoint of the disk, with frames that take any time on their way.
Ran run(const Options& options, Disk& disk) {
  actors::VirtualScheduler scheduler(options.seed);
  test::SimulatedTransport network(
      options.seed, {.max_delay = std::chrono::milliseconds(50)},
      [&](auto delay, auto job) { scheduler.later(delay, std::move(job)); });
  Ran out;
  Stage stage(scheduler, network, 0);
  for (int i = 0; i < options.rollouts; ++i) {
    auto there = stage.away.spawn(cat("recording", i), RecordingRollout{{}, &out.events},
                                  {.executor = cat("rollout", i)});
    stage.cluster.rollouts.push_back(stage.home.ref(there.address(), RecordingRollout::Handled{}));
  }
  TrainingPlan plan = plan_of(options.steps, options.save_every);
  auto data = many_prompts();
  restore(disk, stage, plan, data, out.events);
  actors::run(stage.home, grpo(stage.cluster, data, plan, config_of(options), held_out(options)));
  out.lines = stage.journal.lines;
  out.records = stage.journal.records;
  return out;
}

std::vector<std::string> lines_of(const Options& options) {
  Disk disk;
  return run(options, disk).lines;
}

AsyncConfig pinned(std::int64_t eta) {
  return {.mode = AsyncMode::pinned, .eta = eta};
}

std::string without_staleness(const std::string& line) {
  return line.substr(0, line.find(" staleness/"));
}

TEST(PinnedBatches, WithEta0AreThoseOfTheSynchronousRun) {
  for (const bool dynamic : {false, true}) {
    const auto off = lines_of({.dynamic = dynamic});
    Disk disk;
    auto on = run({.async = pinned(0), .dynamic = dynamic}, disk);
    ASSERT_EQ(off.size(), static_cast<std::size_t>(run_steps));
    EXPECT_THAT(on.records, testing::Each(AllOf(has_metric("staleness/mean", 0),
                                                has_metric("staleness/max", 0))));
    for (auto& line : on.lines) line = without_staleness(line);
    EXPECT_EQ(on.lines, off);
    for (const auto& line : off) EXPECT_THAT(line, Not(HasSubstr("staleness")));
  }
}

TEST(PinnedBatches, AreTheSameForAnyDelaysAndAnyNumberOfRollouts) {
  std::set<std::string> ends;
  for (const std::int64_t eta : {0, 1, 4}) {
    for (const bool dynamic : {false, true}) {
      const auto first = lines_of({.async = pinned(eta), .rollouts = 1, .dynamic = dynamic});
      ASSERT_EQ(first.size(), static_cast<std::size_t>(run_steps));
      ends.insert(first.back());
      for (const int rollouts : {1, 2, 7})
        for (std::uint64_t seed = 0; seed < 10; ++seed)
          EXPECT_EQ(
              lines_of(
                  {.async = pinned(eta), .rollouts = rollouts, .seed = seed, .dynamic = dynamic}),
              first)
              << "eta " << eta << ", " << rollouts << " rollouts, seed " << seed;
    }
  }
  EXPECT_EQ(ends.size(), 6u) << "eta changes the weights";
}

TEST(PinnedBatches, AreSampledEtaVersionsBehind) {
  for (const std::int64_t eta : {0, 1, 4}) {
    const auto lines = lines_of({.async = pinned(eta)});
    for (std::int64_t batch = 0; batch < run_steps; ++batch) {
      const std::int64_t staleness = std::min(batch, eta);
      EXPECT_THAT(
          lines[static_cast<std::size_t>(batch)],
          testing::EndsWith(cat(" staleness/mean=", staleness, " staleness/max=", staleness)));
    }
  }
}

TEST(PinnedBatches, AreSampledWhileTheBatchBeforeThemIsTrained) {
  Disk disk, other;
  const auto first_training = [](const Ran& ran) {
    std::int64_t generated = 0;
    for (const auto& event : ran.events) {
      if (event.starts_with("train")) break;
      ++generated;
    }
    return generated;
  };
  EXPECT_EQ(first_training(run({.rollouts = 1}, disk)), 1) << "one batch of one chunk";
  const auto eager = run({.async = {AsyncMode::pinned, 2, 1000}, .rollouts = 1}, other);
  EXPECT_GE(first_training(eager), 2) << "further batches wait in the rollout";
  EXPECT_THAT(eager.events, Contains(testing::MatchesRegex("generate [0-9]+ by 0")).Times(3));
}

TEST(PinnedBatches, AreTheSameAfterAnyInterruptionAndInLongerRuns) {
  for (const std::int64_t eta : {1, 4}) {
    for (const bool dynamic : {false, true}) {
      const Options whole{.async = pinned(eta), .save_every = 1, .dynamic = dynamic};
      const auto lines = lines_of(whole);
      for (std::int64_t cut = 1; cut < run_steps; ++cut) {
        Disk disk;
        Options half = whole;
        half.steps = cut;  // the checkpoint of the last step is that of an interrupted run
        half.rollouts = 3;
        auto parts = run(half, disk).lines;
        const auto rest = run(whole, disk).lines;
        parts.insert(parts.end(), rest.begin(), rest.end());
        EXPECT_EQ(parts, lines) << "eta " << eta << ", after step " << cut;
      }
    }
  }
}

TEST(PinnedBatches, KeepAtMostEtaVersionsWithACheckpoint) {
  Disk disk;
  run({.async = pinned(2), .save_every = 1}, disk);
  for (const auto& [step, weights] : disk.versions) {
    std::vector<std::uint64_t> kept;
    for (const auto& each : weights) kept.push_back(each->version);
    EXPECT_EQ(kept, disk.checkpoints.at(step).state.versions);
    EXPECT_EQ(kept.size(), static_cast<std::size_t>(std::min<std::int64_t>(step, 2)));
    EXPECT_EQ(kept.back() + 1, static_cast<std::uint64_t>(step));
  }
}

TEST(PinnedBatches, OfACheckpointWithoutOlderVersionsUseItsOwn) {
  Disk disk;
  run({.steps = 6}, disk);
  const auto steps = run({.async = pinned(2)}, disk).records;
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_THAT(steps[0], has_metric("staleness/max", 0));
  EXPECT_THAT(steps[1], has_metric("staleness/max", 1));
  EXPECT_THAT(steps[2], has_metric("staleness/max", 2));
}

TEST(PinnedBatches, AreEvaluatedByTheVersionAfterTheirBatch) {
  const Options options{.async = pinned(2), .rollouts = 2, .save_every = 2, .eval_every = 2};
  const auto first = lines_of(options);
  ASSERT_EQ(first.size(), static_cast<std::size_t>(run_steps) + 1) << "step 0 is an evaluation";
  for (std::size_t step = 2; step < first.size(); step += 2)
    EXPECT_THAT(first[step], HasSubstr("eval/reward="));
  for (std::uint64_t seed = 1; seed < 10; ++seed) {
    Options other = options;
    other.seed = seed;
    other.rollouts = 3;
    EXPECT_EQ(lines_of(other), first);
  }
}

TEST(PinnedBatches, WithGreedyBaselinesAreTheSameForAnyDelays) {
  const Options options{.async = pinned(2), .remax = true};
  const auto first = lines_of(options);
  EXPECT_THAT(first.back(), HasSubstr("rewards/greedy/mean="));
  for (std::uint64_t seed = 1; seed < 10; ++seed) {
    Options other = options;
    other.seed = seed;
    EXPECT_EQ(lines_of(other), first);
  }
}

TEST(PinnedBatches, AreTheSameOverThreads) {
  const auto over_threads = [](int rollouts) {
    actors::ThreadScheduler scheduler;
    transports::Loopback transport;
    Stage stage(scheduler, transport, rollouts);
    auto data = many_prompts();
    actors::run(stage.home,
                grpo(stage.cluster, data, plan_of(run_steps), config_of({.async = pinned(1)})));
    return stage.journal.lines;
  };
  const auto first = lines_of({.async = pinned(1)});
  for (const int rollouts : {1, 2, 7}) EXPECT_EQ(over_threads(rollouts), first);
}

TEST(PinnedBatches, EndWithTheirPrompts) {
  actors::VirtualScheduler scheduler;
  transports::Loopback transport;
  Stage stage(scheduler, transport, 2);
  auto data = prompts({.batch_size = 3, .epochs = 1, .seed = 5});
  actors::run(stage.home, grpo(stage.cluster, data, plan_of(100), config_of({.async = pinned(2)})));
  EXPECT_EQ(stage.journal.lines.size(), 3u) << "eight prompts, three a batch";
  EXPECT_THAT(stage.saved, testing::SizeIs(1)) << "the last step is saved";
}

TEST(PinnedBatches, EndTheRunWithTheFailureOfARollout) {
  actors::VirtualScheduler scheduler;
  transports::Loopback transport;
  Stage stage(scheduler, transport, 1);
  auto bad = stage.away.spawn("bad", FakeRollout{{}, {}, 1.0f}, {.executor = "bad"});
  stage.cluster.rollouts.push_back(stage.home.ref(bad.address(), FakeRollout::Handled{}));
  auto data = many_prompts();
  try {
    actors::run(stage.home,
                grpo(stage.cluster, data, plan_of(run_steps), config_of({.async = pinned(1)})));
    FAIL() << "the weights of a rollout are damaged";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Errc::corrupt);
    EXPECT_THAT(failure.error().what, HasSubstr("bad"));
  }
}

TEST(PinnedBatches, StopAfterAStepWhenASignalArrives) {
  actors::VirtualScheduler scheduler;
  transports::Loopback transport;
  Stage stage(scheduler, transport, 2);
  stage.stop.request();
  auto data = many_prompts();
  actors::run(stage.home,
              grpo(stage.cluster, data, plan_of(run_steps), config_of({.async = pinned(2)})));
  EXPECT_EQ(stage.journal.lines.size(), 1u);
  EXPECT_THAT(stage.saved, testing::SizeIs(1));
}

}  // namespace
}  // namespace troupe::algorithms

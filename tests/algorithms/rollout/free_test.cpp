// async.mode free: whatever the delays, every sample is trained on once, and none is too old.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <set>

#include "algorithms/grpo.h"
#include "algorithms/rollout/batches.h"
#include "engine/base/random/random.h"
#include "tests/algorithms/rollout/disk.h"

namespace troupe::algorithms::free_test {
namespace {

using engine::generate::PartialSamples;

constexpr int group = 4;
constexpr std::uint64_t eval_ids = std::uint64_t{1} << 61;

/// A rollout that takes time for every token, and whose weights are replaced between two of them.
struct SlowRollout {
  using Handled = FakeRollout::Handled;
  actors::Node* node;
  std::uint64_t seed;
  PartialSamples partial;
  std::vector<std::string>* events;
  std::uint64_t drawn = 0, cancelled = 0;
  protocol::Weights weights = {}, prepared = {};

  Task<std::vector<protocol::Completion>> on(protocol::Generate m) {
    std::vector<protocol::Completion> all;
    for (const auto& request : m.requests) {
      events->push_back(cat("generate ", request.sample_id));
      auto sampling = sample(request);
      all.push_back(co_await sampling);
    }
    co_return all;
  }
  Task<protocol::Completion> sample(protocol::SampleRequest request) {
    protocol::Completion c{.sample_id = request.sample_id};
    const std::uint64_t length = 1 + uniform_below(8, seed, request.sample_id, 0);
    std::uint64_t before = weights.version;
    while (c.ids.size() < length && cancelled == 0) {
      auto pause = node->after(std::chrono::milliseconds(1 + uniform_below(12, seed, ++drawn, 1)));
      co_await pause.get();
      if (weights.version != before && !c.ids.empty()) interrupt(c);
      before = weights.version;
      append(c, request);
    }
    if (request.sample_id >= eval_ids)
      for (const auto& run : c.versions) events->push_back(cat("evaluated by ", run.version));
    c.text = cat(c.ids.size());
    c.finish_reason = protocol::FinishReason::stop;
    co_return c;
  }
  void interrupt(protocol::Completion& c) const {
    ++c.interruptions;
    if (partial == PartialSamples::proceed || c.restarts > 0) return;
    ++c.restarts;
    c.ids.clear();
    c.logp.clear();
    c.versions.clear();
  }
  void append(protocol::Completion& c, const protocol::SampleRequest& request) const {
    c.ids.push_back(static_cast<std::int32_t>((request.sample_id + c.ids.size()) % 31));
    c.logp.push_back(-weights.values->front());
    if (c.versions.empty() || c.versions.back().version != weights.version)
      c.versions.push_back({weights.version, 0});
    ++c.versions.back().count;
  }
  Task<std::vector<float>> on(protocol::PrepareWeights m) {
    check(m.weights.version >= weights.version, "older weights");
    prepared = std::move(m.weights);
    co_return prepared.probe.logp;
  }
  Task<void> on(protocol::CommitWeights m) {
    check(m.version == prepared.version, "commit of another version than was prepared");
    weights = prepared;
    co_return;
  }
  Task<std::uint64_t> on(protocol::CancelSamples) {
    events->push_back("cancel");
    co_return ++cancelled;
  }
};

struct Options {
  AsyncMode mode = AsyncMode::free;
  std::int64_t eta = 1;
  int rollouts = 2;
  std::uint64_t seed = 0;
  std::int64_t steps = run_steps, save_every = 0, eval_every = 0;
  bool dynamic = false, remax = false, stops = false;
  PartialSamples partial = PartialSamples::proceed;
};

GrpoConfig config_of(const Options& options) {
  GrpoConfig config;
  config.group = group;
  config.recompute_old = options.eta > 0;
  config.sampling.max_new_tokens = 8;
  config.async = {.mode = options.mode, .eta = options.eta, .change = {options.partial, {}}};
  config.dynamic.on = options.dynamic;
  if (options.remax) config.advantage.estimator = Estimator::remax;
  config.logged_completions = 1 << 20;
  return config;
}

struct Ran {
  std::vector<std::string> metrics, events;
  std::vector<std::uint64_t> ids;  ///< of the samples that were trained on
};

double number_of(const std::string& line, const std::string& name) {
  const auto at = line.find(cat(' ', name, '='));
  EXPECT_NE(at, std::string::npos) << name << " in " << line;
  return std::stod(line.substr(at + name.size() + 2));
}

HeldOutPrompts held_out(const Options& options) {
  HeldOutPrompts prompts;
  if (options.eval_every == 0) return prompts;
  for (int i = 0; i < 3; ++i)
    prompts.rows.push_back({{i + 4, 9}, cat("held out ", i), Json(), Json()});
  prompts.every = options.eval_every;
  return prompts;
}

// Runs from the newest checkpoint of the disk.
Ran run(const Options& options, Disk& disk) {
  actors::VirtualScheduler scheduler(options.seed);
  test::SimulatedTransport network(
      options.seed, {.max_delay = std::chrono::milliseconds(40)},
      [&](auto delay, auto job) { scheduler.later(delay, std::move(job)); });
  Ran out;
  Stage stage(scheduler, network, 0);
  for (int i = 0; i < options.rollouts; ++i) {
    const auto seed = options.seed * 10 + static_cast<std::uint64_t>(i);
    auto there = stage.away.spawn(cat("slow", i),
                                  SlowRollout{&stage.away, seed, options.partial, &out.events},
                                  {.max_concurrency = 8});
    stage.cluster.rollouts.push_back(stage.home.ref(there.address(), SlowRollout::Handled{}));
  }
  stage.cluster.chunks_per_rollout = 3;
  if (options.stops) stage.stop.request();
  TrainingPlan plan = plan_of(options.steps, options.save_every);
  auto data = many_prompts();
  restore(disk, stage, plan, data, out.events);
  actors::run(stage.home, grpo(stage.cluster, data, plan, config_of(options), held_out(options)));
  for (const auto& line : stage.journal.lines) {
    if (line.starts_with("step ") && !line.starts_with("step 0 ")) out.metrics.push_back(line);
    if (!line.starts_with("sample of ")) continue;
    const auto id = line.substr(line.find(": ") + 2);
    out.ids.push_back(std::stoull(id));
  }
  return out;
}

Ran run(const Options& options) {
  Disk disk;
  return run(options, disk);
}

// The samples of the synchronous run, in their order.
void expect_every_sample_once(const std::vector<std::uint64_t>& ids, std::int64_t steps) {
  static const auto expected = run({.mode = AsyncMode::off}).ids;
  ASSERT_EQ(std::ssize(ids), steps * 3 * group);
  for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], expected[i]);
}

TEST(FreeBatches, LoseNoSampleAndKeepTheStalenessBound) {
  double mixed = 0, oldest = 0;
  for (const std::int64_t eta : {0, 1, 4}) {
    for (const auto partial : {PartialSamples::proceed, PartialSamples::restart}) {
      for (const int rollouts : {1, 2, 5}) {
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
          const Ran ran = run({.eta = eta, .rollouts = rollouts, .seed = seed, .partial = partial});
          SCOPED_TRACE(cat("eta ", eta, ", ", rollouts, " rollouts, seed ", seed));
          ASSERT_EQ(std::ssize(ran.metrics), run_steps);
          expect_every_sample_once(ran.ids, run_steps);
          for (const auto& line : ran.metrics) {
            EXPECT_LE(number_of(line, "staleness/max"), static_cast<double>(eta));
            EXPECT_GE(number_of(line, "staleness/mean"), 0);
            EXPECT_GE(number_of(line, "rollout/interrupted"), number_of(line, "rollout/resumed"));
            mixed += number_of(line, "rollout/mixed_versions");
            oldest = std::max(oldest, number_of(line, "staleness/max"));
          }
        }
      }
    }
  }
  EXPECT_GT(mixed, 100) << "weights are replaced within samples";
  EXPECT_EQ(oldest, 4) << "the bound is reached";
}

TEST(FreeBatches, OfEta0HaveTheWeightsThatAreTrained) {
  const Ran ran = run({.eta = 0});
  for (const auto& line : ran.metrics) {
    EXPECT_EQ(number_of(line, "staleness/max"), 0);
    EXPECT_EQ(number_of(line, "rollout/interrupted"), 0);
  }
}

TEST(FreeBatches, AreRefilledAndComparedWithGreedyAnswers) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (const auto& options : {Options{.eta = 2, .seed = seed, .dynamic = true},
                                Options{.eta = 2, .seed = seed, .remax = true}}) {
      const Ran ran = run(options);
      ASSERT_EQ(std::ssize(ran.metrics), run_steps);
      EXPECT_EQ(std::set(ran.ids.begin(), ran.ids.end()).size(), ran.ids.size());
      for (const auto& line : ran.metrics) EXPECT_LE(number_of(line, "staleness/max"), 2);
    }
  }
}

TEST(FreeBatches, GoOnAfterAnyInterruption) {
  for (std::int64_t cut = 1; cut < run_steps; ++cut) {
    Disk disk;
    const auto seed = static_cast<std::uint64_t>(cut);
    Options options{.eta = 3, .seed = seed, .steps = cut, .save_every = 1};
    Ran all = run(options, disk);
    EXPECT_TRUE(disk.checkpoints.at(cut).state.versions.empty());
    options.steps = run_steps;
    const Ran rest = run(options, disk);
    all.ids.insert(all.ids.end(), rest.ids.begin(), rest.ids.end());
    expect_every_sample_once(all.ids, run_steps);
    for (const auto& line : rest.metrics) EXPECT_LE(number_of(line, "staleness/max"), 3);
  }
}

TEST(FreeBatches, DoNotSampleWhatTheirCheckpointHas) {
  std::size_t kept = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Disk disk;
    Options options{.eta = 4, .seed = seed, .stops = true};
    Ran all = run(options, disk);
    const auto samples = disk.samples.at(1);
    EXPECT_EQ(disk.checkpoints.at(1).state.finished, samples.size());
    kept += samples.size();
    options.stops = false;
    const Ran rest = run(options, disk);
    for (const auto& sample : samples)
      EXPECT_THAT(rest.events, Not(Contains(cat("generate ", sample.completion.sample_id))));
    all.ids.insert(all.ids.end(), rest.ids.begin(), rest.ids.end());
    expect_every_sample_once(all.ids, run_steps);
    for (const auto& line : rest.metrics) EXPECT_LE(number_of(line, "staleness/max"), 4);
  }
  EXPECT_GT(kept, 20u);
}

TEST(FreeBatches, AreEvaluatedByOneVersion) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Ran ran = run({.eta = 2, .seed = seed, .eval_every = 3});
    ASSERT_EQ(std::ssize(ran.metrics), run_steps);
    std::vector<std::string> evaluated;
    std::ranges::copy_if(ran.events, std::back_inserter(evaluated),
                         [](const auto& event) { return event.starts_with("evaluated"); });
    std::vector<std::string> expected;
    for (const int version : {0, 3, 6, 9, 12})
      for (int i = 0; i < 3; ++i) expected.push_back(cat("evaluated by ", version));
    EXPECT_EQ(evaluated, expected);
  }
}

TEST(FreeBatches, EndWithoutTheSamplesThatNobodyNeeds) {
  const Ran ran = run({.eta = 4, .stops = true});
  EXPECT_EQ(ran.metrics.size(), 1u);
  expect_every_sample_once(ran.ids, 1);
  EXPECT_THAT(ran.events, Contains("cancel"));
}

}  // namespace
}  // namespace troupe::algorithms::free_test

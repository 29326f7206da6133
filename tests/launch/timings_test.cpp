// timings.jsonl: how a step's time is divided, throughput and utilization.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "engine/base/files/file.h"
#include "engine/base/log/log_file.h"
#include "engine/base/text/text.h"
#include "launch/journal/async_times.h"
#include "launch/journal/metrics_file.h"
#include "launch/journal/run_journal.h"
#include "launch/journal/timings_file.h"
#include "launch/profile/pass_flops.h"
#include "launch/run/overlap_summary.h"

namespace troupe::launch {
namespace {

using algorithms::Activity;
using algorithms::PassModel;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr std::int64_t second = 1'000'000'000;

/// A call whose handler runs from `began` to `ended`, in seconds after the start.
actors::AskRecord call(const std::string& actor, const std::string& type, double began,
                       double ended) {
  const auto at = [](double seconds) {
    return 5 * second + static_cast<std::int64_t>(seconds * static_cast<double>(second));
  };
  return {{"process", actor}, type, at(began - 0.25), at(began), at(ended), at(ended), false};
}

double part(const journal::StepSeconds& seconds, journal::StepPart which) {
  return seconds.parts[journal::index_of(which)];
}

double sum(const journal::StepSeconds& seconds) {
  return std::accumulate(seconds.parts.begin(), seconds.parts.end(), 0.0);
}

TEST(StepTimes, OverlappedWorkCountsWhereItIsNotHidden) {
  journal::StepTimes times;
  times.begin(5 * second);
  times.answered(call("rollout", "generate", 1, 5));
  times.answered(call("reference", "logprobs", 3, 6));
  times.answered(call("verifier", "compute_rewards", 5.5, 7));
  times.answered(call("policy", "train_step", 8, 10));
  const journal::StepSeconds step = times.end(15 * second);
  EXPECT_DOUBLE_EQ(step.all, 10);
  EXPECT_DOUBLE_EQ(part(step, journal::StepPart::rollout), 4.25)
      << "with the quarter that its call waited";
  EXPECT_DOUBLE_EQ(part(step, journal::StepPart::reference), 1) << "from 5 to 6";
  EXPECT_DOUBLE_EQ(part(step, journal::StepPart::reward), 1) << "from 6 to 7";
  EXPECT_DOUBLE_EQ(part(step, journal::StepPart::update), 2.25);
  EXPECT_DOUBLE_EQ(part(step, journal::StepPart::other), 1.5);
  EXPECT_DOUBLE_EQ(sum(step), step.all);
  EXPECT_DOUBLE_EQ(step.alone[journal::index_of(journal::StepPart::rollout)], 2.25)
      << "until the reference begins";
  EXPECT_DOUBLE_EQ(step.alone[journal::index_of(journal::StepPart::reference)], 0.5)
      << "until the verifier begins";
}

TEST(StepTimes, ARunningHandlerCountsBeforeAWaitingCall) {
  journal::StepTimes times;
  times.begin(5 * second);
  // On one engine the policy's update waits until the critic's has ended.
  auto critic = call("critic", "train_step", 1, 3), policy = call("policy", "train_step", 3, 7);
  policy.asked = critic.asked;
  times.answered(critic);
  times.answered(policy);
  const journal::StepSeconds step = times.end(12 * second);
  EXPECT_DOUBLE_EQ(part(step, journal::StepPart::update_critic), 2);
  EXPECT_DOUBLE_EQ(part(step, journal::StepPart::update), 4.25);
  EXPECT_DOUBLE_EQ(sum(step), step.all);
}

TEST(StepTimes, TheAlgorithmsOwnTimeIsItsActivity) {
  journal::StepTimes times;
  times.begin(0);
  times.enter(Activity::advantage, 1 * second);
  times.enter(Activity::other, 3 * second);
  journal::StepSeconds step = times.end(4 * second);
  EXPECT_DOUBLE_EQ(part(step, journal::StepPart::advantage), 2);
  EXPECT_DOUBLE_EQ(part(step, journal::StepPart::other), 2);
  times.enter(Activity::evaluation, 4 * second);
  times.answered(
      {{"process", "policy"}, "logprobs", 5 * second, 5 * second, 8 * second, 8 * second, false});
  times.enter(Activity::other, 9 * second);
  step = times.end(9 * second);
  EXPECT_DOUBLE_EQ(part(step, journal::StepPart::eval), 5);
}

TEST(StepTimes, ALongStepIsCountedInPieces) {
  journal::StepTimes times;
  times.begin(0);
  for (std::int64_t i = 0; i < 100'000; ++i)
    times.answered(
        {{"", "reference"}, "logprobs", 10 * i, 10 * i + 1, 10 * i + 9, 10 * i + 9, false});
  const journal::StepSeconds step = times.end(1'000'000);
  EXPECT_NEAR(part(step, journal::StepPart::reference), 0.9e-3, 1e-9);
  EXPECT_NEAR(part(step, journal::StepPart::other), 0.1e-3, 1e-9);
}

TEST(StepTimes, EveryMessageBelongsToAPart) {
  const auto of = [](const char* actor, const char* type, Activity activity = Activity::other) {
    return journal::part_of({{"", actor}, type, 0, 0, 0, 0, false}, activity);
  };
  EXPECT_EQ(of("policy", "train_step"), journal::StepPart::update);
  EXPECT_EQ(of("critic", "train_step"), journal::StepPart::update_critic);
  EXPECT_EQ(of("critic", "score", Activity::advantage), journal::StepPart::advantage);
  EXPECT_EQ(of("policy", "logprobs", Activity::advantage), journal::StepPart::advantage);
  EXPECT_EQ(of("policy", "logprobs"), journal::StepPart::reference) << "the base of an adapter";
  EXPECT_EQ(of("reference", "mix_weights"), journal::StepPart::weights);
  EXPECT_EQ(of("rollout", "prepare_weights"), journal::StepPart::weights);
  EXPECT_EQ(of("rollout", "generate", Activity::evaluation), journal::StepPart::eval);
  EXPECT_EQ(of("policy", "save"), journal::StepPart::save);
}

/// Shape b of the benchmarks: 110 million weights.
engine::models::DecoderSpec shape_b() {
  engine::models::DecoderSpec spec;
  spec.vocabulary = 32000;
  spec.width = 768;
  spec.layers = 12;
  spec.inner = 2048;
  spec.heads = spec.kv_heads = 12;
  spec.head_size = 64;
  spec.tied = true;
  return spec;
}

TEST(Flops, OfShapeBAreThoseOfMegatronsFormula) {
  // 12 B s L h^2 ((1 + g/a + s/h) + 1.5 f/h + V/(2 L h)) with B = 4, s = 512, L = 12, h = 768,
  // a = g = 12, f = 2048, V = 32000, by hand: 1461631057920.
  const profile::PassCounter counter({{PassModel::policy, profile::counted(shape_b())}}, {});
  const auto flops = counter({PassModel::policy, true, {4, 4 * 512, 4 * 512.0 * 512}});
  EXPECT_DOUBLE_EQ(flops.model, 1461631057920.0);
  const auto forward = counter({PassModel::policy, false, {4, 4 * 512, 4 * 512.0 * 512}});
  EXPECT_DOUBLE_EQ(3 * forward.model, flops.model);
  EXPECT_DOUBLE_EQ(forward.hardware, forward.model);
}

TEST(Flops, RecomputationCountsAsHardwareFlops) {
  const algorithms::ModelPass pass{PassModel::policy, true, {4, 4 * 512, 4 * 512.0 * 512}};
  const auto with = [&](engine::nn::Recomputed recomputed) {
    return profile::PassCounter({{PassModel::policy, profile::counted(shape_b())}},
                                recomputed)(pass);
  };
  // By hand: the layers' products of a forward pass are 4 * 12 * 768 * 4608 * 2048, those of
  // attention 4 * 12 * 768 * 4 * 512^2.
  const double layers = 347892350976, attention = 38654705664;
  EXPECT_DOUBLE_EQ(with({}).hardware - with({}).model, attention / 2);
  EXPECT_DOUBLE_EQ(with({.kinds = {engine::nn::Recompute::attention}}).hardware - with({}).hardware,
                   attention);
  EXPECT_DOUBLE_EQ(with({.kinds = {engine::nn::Recompute::full}}).hardware - with({}).hardware,
                   layers + attention);
  EXPECT_DOUBLE_EQ(with({.kinds = {engine::nn::Recompute::full}}).model, with({}).model);
  const auto quarter = [&](engine::nn::Recomputed recomputed) {
    return profile::PassCounter({{PassModel::policy, profile::counted(shape_b())}}, recomputed,
                                0.25)(pass)
        .hardware;
  };
  EXPECT_DOUBLE_EQ(quarter({.kinds = {engine::nn::Recompute::full}}) - quarter({}),
                   (layers + attention) / 4);
  EXPECT_DOUBLE_EQ(
      quarter({.kinds = {engine::nn::Recompute::full, engine::nn::Recompute::attention}}) -
          quarter({}),
      layers / 4 + attention);
}

TEST(Flops, AFrozenBaseHasNoWeightGradients) {
  profile::CountedModel adapted = profile::counted(shape_b());
  adapted.backward = 1;
  const algorithms::ModelPass pass{PassModel::policy, true, {1, 100, 0}};
  EXPECT_DOUBLE_EQ(
      3 * profile::PassCounter({{PassModel::policy, adapted}}, {})(pass).model,
      2 * profile::PassCounter({{PassModel::policy, profile::counted(shape_b())}}, {})(pass).model);
}

double metric(const algorithms::Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics)
    if (key == name) return value;
  ADD_FAILURE() << name << " is missing";
  return 0;
}

TEST(Timings, ThroughputAndUtilizationOfShapeB) {
  journal::StepSeconds seconds;
  seconds.all = 8;
  seconds.parts[journal::index_of(journal::StepPart::update)] = 8;
  const journal::StepWork work{{2048, 4, 1.5}, 1461631057920.0, 1.5e12};
  const journal::Measured measured{.flops = [](const auto&) { return std::pair(0.0, 0.0); },
                                   .peak_tflops = 0.4,
                                   .peak_source = "train.peak_tflops"};
  const auto metrics = journal::timing_metrics(seconds, work, measured);
  EXPECT_DOUBLE_EQ(metric(metrics, "perf/tokens_per_second"), 256);
  EXPECT_DOUBLE_EQ(metric(metrics, "perf/samples_per_second"), 0.5);
  EXPECT_NEAR(metric(metrics, "perf/tflops"), 0.18270388224, 1e-12);
  EXPECT_NEAR(metric(metrics, "perf/mfu"), 0.4567597056, 1e-12);
  EXPECT_NEAR(metric(metrics, "perf/hfu"), 0.46875, 1e-12);
  EXPECT_DOUBLE_EQ(metric(metrics, "epoch"), 1.5);
}

TEST(Timings, KeysAreThoseOfTheMethod) {
  const auto keys = [](const journal::Measured& measured) {
    std::vector<std::string> out;
    for (const auto& [name, value] : journal::timing_metrics({}, {}, measured)) out.push_back(name);
    return out;
  };
  EXPECT_THAT(keys({}), ElementsAre("timing/all", "timing/update", "timing/save", "timing/other"));
  EXPECT_THAT(
      keys({.parts = {journal::StepPart::update, journal::StepPart::save,
                      journal::StepPart::rollout, journal::StepPart::reward}}),
      ElementsAre("timing/all", "timing/rollout", "timing/reward", "timing/update", "timing/save",
                  "timing/other", "timing/non_overlap_rollout", "timing/non_overlap_reward"));
}

TEST(Timings, OfAnAsynchronousRunCountWhatHasNoWork) {
  journal::AsyncTimes times;
  times.begin(100 * second);
  EXPECT_THAT(times.end(101 * second), testing::IsEmpty()) << "a run that does not overlap";
  times.changed({.in_flight = 8, .rollouts = 4, .policy_waits = true}, 101 * second);
  times.changed({.queue = 1, .in_flight = 4, .rollouts = 4, .idle_rollouts = 1, .steady = true},
                103 * second);
  times.changed(
      {.queue = 2, .waiting_for_weights = true, .rollouts = 4, .idle_rollouts = 4, .steady = true},
      104 * second);
  EXPECT_THAT(times.end(105 * second),
              ElementsAre(Pair("async/queue", 0.75), Pair("async/in_flight", 5),
                          Pair("async/waiting_for_weights", 1), Pair("timing/idle/rollout", 1.25),
                          Pair("timing/idle/policy", 2)));
  times.changed({.in_flight = 8, .rollouts = 4, .policy_waits = true, .steady = true},
                107 * second);
  EXPECT_THAT(times.end(109 * second),
              ElementsAre(Pair("async/queue", 1), Pair("async/in_flight", 4),
                          Pair("async/waiting_for_weights", 2), Pair("timing/idle/rollout", 2),
                          Pair("timing/idle/policy", 2)));
  EXPECT_DOUBLE_EQ(times.idle().all, 6) << "without the first batch";
  EXPECT_DOUBLE_EQ(times.idle().rollout, 3.25);
  EXPECT_DOUBLE_EQ(times.idle().policy, 2);
}

TEST(OverlapSummary, NamesTheSlowerSideAndWhatToChange) {
  const auto summary = [](double rollout, double policy, std::int64_t eta = 1) {
    return run::overlap_summary({.all = 10, .rollout = rollout, .policy = policy}, eta, false);
  };
  EXPECT_THAT(summary(0.2, 4), AllOf(HasSubstr("the rollouts were idle for 2 % of the time, the "
                                               "policy for 40 %: rollout-bound"),
                                     HasSubstr("rollout.threads")));
  EXPECT_THAT(summary(4, 0.2), AllOf(HasSubstr("training-bound"), HasSubstr("train.threads")));
  EXPECT_THAT(summary(0.2, 0.4), HasSubstr("balanced"));
  EXPECT_THAT(summary(5, 5, 0), HasSubstr("async.eta=1"));
  EXPECT_THAT(summary(4, 5), HasSubstr("a larger async.eta"));
  EXPECT_THAT(run::overlap_summary({.all = 10}, 1, true), HasSubstr("took turns"));
  EXPECT_EQ(run::overlap_summary({}, 1, false), "");
}

TEST(Timings, UtcTextHasTheDateAndMilliseconds) {
  EXPECT_EQ(utc_text(0.25), "1970-01-01T00:00:00.250Z");
  EXPECT_EQ(utc_text(1795557660.125), "2026-11-24T22:01:00.125Z");
}

TEST(Timings, AResumedRunHasEachStepOnceAndItsWallTimeContinues) {
  const std::string folder = testing::TempDir() + "timings_resume";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto run = [&](std::int64_t from, std::int64_t to) {
    journal::RunJournal journal(value_or_throw(OutputFolder::open(folder)), "test", "sft", 0);
    journal.measure({.peak_tflops = 0.5, .peak_source = "train.peak_tflops"});
    journal.begin(6, from);
    for (std::int64_t step = from + 1; step <= to; ++step) {
      journal.processed({100, 2, static_cast<double>(step)});
      journal.record(step, {{"loss", 1}});
    }
  };
  run(0, 5);  // killed after step 5, the last checkpoint was of step 3
  run(3, 6);
  std::vector<std::int64_t> steps;
  std::vector<std::string> headers;
  double wall = 0;
  journal::for_each_line(folder + "/timings.jsonl", [&](const Json& line, std::string_view text) {
    if (!line.find("step")) {
      headers.emplace_back(text);
      return;
    }
    steps.push_back(line.find("step")->integer());
    EXPECT_GT(line.find("wall")->number(), wall);
    wall = line.find("wall")->number();
    EXPECT_EQ(line.find("epoch")->number(), static_cast<double>(steps.back()));
    EXPECT_GT(line.find("perf/tokens_per_second")->number(), 0);
  });
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_EQ(headers.size(), 3u);
  EXPECT_THAT(headers[0],
              HasSubstr("\"steps\":6,\"peak_tflops\":0.5,\"peak\":\"train.peak_tflops\""));
  EXPECT_THAT(headers[1], HasSubstr("\"resumed_after_step\":3"));
  EXPECT_THAT(headers[2], HasSubstr("\"ended\":\"failed\"")) << "nobody said how";
  run(0, 1);
  const std::string whole = read_file(folder + "/timings.jsonl").value_or("");
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 3) << "a new run keeps no header";
}

}  // namespace
}  // namespace troupe::launch

// GRPO's loop over fake actors: refills, greedy baselines, recomputed log-probabilities.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "algorithms/dynamic_sampling.h"
#include "algorithms/grpo.h"
#include "algorithms/grpo_minibatches.h"
#include "tests/algorithms/stage.h"

namespace troupe::algorithms {
namespace {

Loader<PromptRow> rows(engine::data::LoaderOptions options = three_a_step) {
  engine::data::Dataset<PromptRow> out;
  for (int i = 0; i < 40; ++i)
    out.examples.push_back({{i + 4, 9}, cat("prompt ", i), Json(i), Json()});
  return {std::move(out), options};
}

// Rewards answers by their numbers: in many groups of two, both are right or both are wrong.
struct DivisorVerifier {
  using Handled = actors::Messages<protocol::ComputeRewards>;
  int right_of = 3;   ///< an answer whose number is divisible by it is right; 0: none is
  int unsolved = -1;  ///< number of messages after which every answer is right; -1: never
  std::vector<protocol::RewardResult> on(protocol::ComputeRewards m) {
    std::vector<protocol::RewardResult> results;
    if (unsolved == 0) right_of = 1;
    --unsolved;
    for (const auto& s : m.requests) {
      const bool right = right_of > 0 && std::stoi(s.completion) % right_of == 0;
      results.push_back({right ? 1.0 : 0.0, {{"right", right ? 1.0 : 0.0}}, ""});
    }
    return results;
  }
};

GrpoConfig pairs_of_answers() {
  GrpoConfig config;
  config.group = 2;
  config.sampling.max_new_tokens = 8;
  config.logged_completions = 0;
  return config;
}

struct GrpoSetup {
  actors::VirtualScheduler scheduler;
  transports::Loopback transport;
  Stage stage;
  explicit GrpoSetup(int right_of = 3, int rollouts = 1, int unsolved = -1)
      : stage(scheduler, transport, rollouts) {
    stage.cluster.verifier =
        stage.home.ref(stage.away.spawn("divisor", DivisorVerifier{right_of, unsolved}).address(),
                       DivisorVerifier::Handled{});
  }
  /// The metrics of each step.
  std::vector<Metrics> grpo(Loader<PromptRow>& data, const TrainingPlan& plan,
                            const GrpoConfig& config) {
    actors::run(stage.home, algorithms::grpo(stage.cluster, data, plan, config));
    return stage.journal.records;
  }
};

TEST(DynamicSampling, FillsTheRoundWithGroupsThatTeach) {
  auto config = pairs_of_answers();
  config.dynamic.on = true;
  auto data = rows();
  const auto steps = GrpoSetup().grpo(data, plan_of(4), config);
  ASSERT_EQ(steps.size(), 4u);
  for (const Metrics& metrics : steps) {
    EXPECT_THAT(metrics, has_metric("reward", 0.5))
        << "every group has one right and one wrong answer";
    EXPECT_THAT(metrics, has_metric("frac_reward_zero_std", 0));
  }
  EXPECT_THAT(steps, Contains(has_metric("filter_groups/refills", testing::Gt(0))))
      << "some round had to be filled up";
}

TEST(DynamicSampling, DoesNotDependOnHowManyRolloutsDraw) {
  auto config = pairs_of_answers();
  config.dynamic.on = true;
  config.loss.beta = 0.1;
  auto first = rows(), second = rows();
  GrpoSetup one, three(3, 3);
  one.grpo(first, plan_of(4), config);
  three.grpo(second, plan_of(4), config);
  EXPECT_EQ(one.stage.journal.lines, three.stage.journal.lines);
}

TEST(DynamicSampling, ResumesFromTheLoadersExactPlace) {
  auto config = pairs_of_answers();
  config.dynamic.on = true;
  auto whole = rows();
  GrpoSetup all;
  all.grpo(whole, plan_of(4, 2), config);
  auto early = rows();
  GrpoSetup before;
  before.grpo(early, plan_of(2, 2), config);
  EXPECT_EQ(before.stage.saved.at(0), all.stage.saved.at(0)) << "the place in the data";
}

TEST(DynamicSampling, WithoutAnyDifferenceIsRefusedInWords) {
  auto config = pairs_of_answers();
  config.dynamic.on = true;
  config.dynamic.max_refills = 2;
  auto data = rows();
  try {
    GrpoSetup(0).grpo(data, plan_of(4), config);
    FAIL() << "there was nothing to learn from";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Errc::bad_input);
    EXPECT_THAT(
        failure.error().what,
        HasSubstr("none of 9 groups of 2 samples, including 2 refills, has different rewards"));
  }
}

TEST(DynamicSampling, ARunThatHasLearnedEverythingIsSavedAndEnds) {
  auto config = pairs_of_answers();
  config.dynamic.on = true;
  config.dynamic.max_refills = 2;
  auto data = rows();
  GrpoSetup world(3, 1, 4);
  const auto steps = world.grpo(data, plan_of(10), config);
  ASSERT_FALSE(steps.empty());
  ASSERT_LT(steps.size(), 5u);
  EXPECT_EQ(world.stage.saved.size(), 1u) << "once, at the step where nothing was left";
  EXPECT_THAT(steps.back(), has_metric("filter_groups/reward", testing::Lt(1)))
      << "it is the mean of all samples, and some were wrong";
}

TEST(DynamicSampling, MakesDoWithFewerGroupsWhenItMayNotRefillFurther) {
  auto config = pairs_of_answers();
  config.dynamic.on = true;
  config.dynamic.max_refills = 1;
  auto data = rows({.batch_size = 8, .seed = 5});
  const auto steps = GrpoSetup(7).grpo(data, plan_of(1), config);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_THAT(steps[0], has_metric("filter_groups/refills", 1));
  EXPECT_THAT(steps[0], has_metric("reward", 0.5));
}

std::vector<protocol::RewardResult> results_of(const std::vector<double>& rewards) {
  std::vector<protocol::RewardResult> out;
  for (const double reward : rewards) out.push_back({reward, {{"part", 1 - reward / 2}}, ""});
  return out;
}

TEST(DynamicSampling, KeepsGroupsWhoseRewardsDifferWithinTheBounds) {
  EXPECT_TRUE(has_reward_differences(results_of({0, 1}), {}));
  EXPECT_FALSE(has_reward_differences(results_of({1, 1}), {}));
  EXPECT_FALSE(has_reward_differences(results_of({}), {}));
  EXPECT_TRUE(has_reward_differences(results_of({0.5, 1}), {.bounds = {0, 1}}));
  EXPECT_FALSE(has_reward_differences(results_of({0.5, 1}), {.bounds = {0.75, 1}}));
  EXPECT_FALSE(has_reward_differences(results_of({0, 2}), {.metric = "other"}));
  EXPECT_TRUE(has_reward_differences(results_of({0, 2}), {.bounds = {0.2, 0.8}, .metric = "part"}));
  auto failed = results_of({0, 1});
  failed[0].reward.reset();
  EXPECT_FALSE(has_reward_differences(failed, {}));
}

TEST(ReMax, ComparesEachAnswerWithTheGreedyOne) {
  auto config = pairs_of_answers();
  config.group = 1;
  config.advantage.estimator = Estimator::remax;
  auto data = rows();
  const auto steps = GrpoSetup(2).grpo(data, plan_of(2), config);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_THAT(steps[0], has_metric("rewards/greedy/mean"));
}

TEST(Recomputed, LogProbabilitiesOfThePolicyStandBesideThoseOfTheRollouts) {
  auto config = pairs_of_answers();
  auto first = rows(), second = rows();
  GrpoSetup rollouts, policy;
  const auto given = rollouts.grpo(first, plan_of(2), config);
  config.recompute_old = true;
  const auto asked = policy.grpo(second, plan_of(2), config);
  EXPECT_NE(policy.stage.journal.lines, rollouts.stage.journal.lines)
      << "the fake policy's log-probabilities are others than the fake rollout's";
  EXPECT_THAT(asked, Contains(has_metric("sampling/sampling_logp_difference/mean")));
  EXPECT_THAT(given, testing::Each(testing::Not(testing::Contains(
                         testing::Pair(testing::StartsWith("sampling/"), testing::_)))));
}

TEST(Recomputed, TheDistanceIsReportedOnceWhereACorrectionSaysItToo) {
  auto config = pairs_of_answers();
  config.recompute_old = true;
  config.loss.correction.weight = Over::token;
  auto data = rows();
  const Metrics step = GrpoSetup().grpo(data, plan_of(1), config).at(0);
  EXPECT_THAT(step, testing::Not(has_metric("sampling/sampling_logp_difference/mean")))
      << "the correction reports it, in the loss, which the fake policy does not compute";
}

// Forward passes of the policy over the samples of one batch, those of the rollouts included.
std::int64_t forward_passes(const GrpoConfig& config) {
  GrpoSetup world;
  auto data = rows();
  world.grpo(data, plan_of(config.epochs), config);
  return std::ranges::count_if(world.stage.journal.passes, [](const ModelPass& pass) {
    return pass.model == PassModel::policy && !pass.backward;
  });
}

TEST(Recomputed, LogProbabilitiesNeedNoPassWhereTheOnlyUpdateComputesThem) {
  auto config = pairs_of_answers();
  config.recompute_old = true;
  EXPECT_EQ(forward_passes(config), 2) << "the metrics of the mismatch need them";
  config.loss.correction.weight = Over::token;
  EXPECT_EQ(forward_passes(config), 1);
  config.epochs = 2;
  EXPECT_EQ(forward_passes(config), 2) << "the second update starts from other weights";
}

TEST(Mismatch, IsThatOfTheTrainedTokens) {
  engine::data::Experience b;
  b.append({1, 2, 3, 4}, {0, 1, 1, 0});
  b.old_logp = {0, -1, -2, -9};
  b.rollout_logp = {5, -1.5F, -1.75F, 0};
  const Metrics expected{
      {"sampling/sampling_logp_difference/mean", 0.375},
      {"sampling/sampling_logp_difference/max", 0.5},
      {"sampling/importance_sampling_ratio/min", std::exp(-0.25)},
      {"sampling/importance_sampling_ratio/mean", (std::exp(0.5) + std::exp(-0.25)) / 2},
      {"sampling/importance_sampling_ratio/max", std::exp(0.5)}};
  EXPECT_EQ(mismatch_metrics(b), expected);
  b.mask = {0, 0, 0, 0};
  EXPECT_EQ(mismatch_metrics(b), Metrics{});
}

TEST(Throughput, CountsSamplesWithoutAGradient) {
  auto data = rows();
  GrpoSetup world(0);  // no answer is right: every advantage is 0
  const auto steps = world.grpo(data, plan_of(2), pairs_of_answers());
  // Three prompts of two tokens, two samples each of two tokens.
  EXPECT_THAT(steps, testing::Each(has_metric("tokens", 24)));
  ASSERT_EQ(world.stage.journal.work.size(), 2u);
  EXPECT_EQ(world.stage.journal.work[0].tokens, 24);
  EXPECT_EQ(world.stage.journal.work[0].samples, 6);
  EXPECT_EQ(world.stage.journal.work[0].epoch, 3.0 / 40);
  double trained = 0, sampled = 0;
  for (const ModelPass& pass : world.stage.journal.passes)
    (pass.backward ? trained : sampled) += pass.sizes.tokens;
  EXPECT_EQ(trained, 0) << "no sample is trained on";
  EXPECT_EQ(sampled, 48);
}

TEST(Throughput, CountsWhatDynamicSamplingDiscards) {
  auto data = rows();
  auto config = pairs_of_answers();
  config.dynamic.on = true;
  GrpoSetup world;
  world.grpo(data, plan_of(4), config);
  double sampled = 0, counted = 0;
  for (const ModelPass& pass : world.stage.journal.passes)
    if (!pass.backward) sampled += pass.sizes.tokens;
  for (const Processed& step : world.stage.journal.work) {
    counted += step.tokens;
    EXPECT_EQ(step.samples, 6);
  }
  EXPECT_GT(sampled, 4 * 24) << "groups were refilled";
  EXPECT_EQ(counted, sampled);
}

TEST(Metrics, AMeanOfNoRewardIsNotANumber) {
  RolloutBatch samples;
  const PromptRow row{{4, 9}, "prompt", Json("expected"), Json()};
  samples.prompts.examples = {&row};
  samples.prompts.ids = {0};
  for (std::uint64_t i = 0; i < 2; ++i)
    samples.completions.push_back(
        {i, {5, 3}, {-1, -1}, {}, "5", protocol::FinishReason::length, {}, 0});
  auto config = pairs_of_answers();
  samples.batch = pack_samples(samples.prompts, samples.completions, 0, config);
  samples.rewards.resize(2);  // both failed
  compute_advantages(samples, config);
  for (const char* name : {"reward", "reward_std", "frac_reward_zero_std", "rewards/shaped/mean",
                           "completions/mean_terminated_length"}) {
    const auto found = std::ranges::find(samples.metrics, name, &Metrics::value_type::first);
    ASSERT_NE(found, samples.metrics.end()) << name;
    EXPECT_TRUE(std::isnan(found->second)) << name << " is " << found->second;
  }
  Remembering journal;
  log_completions(journal, 1, samples, 1);
  EXPECT_THAT(journal.answers, ElementsAre(Json("expected")));
}

}  // namespace
}  // namespace troupe::algorithms

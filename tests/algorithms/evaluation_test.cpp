// Evaluation by sampling over fake actors: it is recorded before the first step and at the ends of
// rollout steps, and it changes nothing else. Model selection in the loops.
#include "algorithms/rollout/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "algorithms/grpo.h"
#include "algorithms/ppo.h"
#include "algorithms/row_training.h"
#include "algorithms/sft.h"
#include "algorithms/training/estimators.h"
#include "tests/algorithms/stage.h"

namespace troupe::algorithms {
namespace {

HeldOutPrompts held_out_rows(int samples = 1, std::int64_t every = 2) {
  HeldOutPrompts out;
  for (int i = 0; i < 5; ++i)
    out.rows.push_back({{i + 40, 9}, cat("held out ", i), Json(i), Json()});
  out.every = every;
  out.samples = samples;
  out.pass_reward = 3;
  out.samples_at_once = 4;
  return out;
}

GrpoConfig evaluated_config() {
  GrpoConfig config;
  config.group = 2;
  config.minibatches = 2;
  config.sampling.max_new_tokens = 8;
  return config;
}

struct RunRecord {
  std::vector<std::string> lines, saved;
};

RunRecord run_grpo(const TrainingPlan& plan, const GrpoConfig& config, HeldOutPrompts evaluated,
                   int rollouts = 1, std::size_t chunks = 1) {
  actors::VirtualScheduler scheduler;
  transports::Loopback transport;
  Stage stage(scheduler, transport, rollouts);
  stage.cluster.chunks_per_rollout = chunks;
  auto data = prompts();
  actors::run(stage.home, grpo(stage.cluster, data, plan, config, std::move(evaluated)));
  return {stage.journal.lines, stage.saved};
}

RunRecord run_ppo(const TrainingPlan& plan, const PpoConfig& config, HeldOutPrompts evaluated) {
  actors::VirtualScheduler scheduler;
  transports::Loopback transport;
  Stage stage(scheduler, transport, 1);
  stage.cluster.critic = stage.home.spawn("critic", FakeCritic{{&stage.saved}});
  auto data = prompts();
  actors::run(stage.home,
              ppo(stage.cluster, data, plan, {.learning_rate = 0.02, .schedule = plan.schedule},
                  config, std::move(evaluated)));
  return {stage.journal.lines, stage.saved};
}

// The lines without step 0 and without the metrics of evaluations.
std::vector<std::string> training_of(const std::vector<std::string>& lines) {
  std::vector<std::string> out;
  for (const auto& line : lines)
    if (!line.starts_with("step 0 ")) out.push_back(line.substr(0, line.find(" eval/")));
  return out;
}

std::vector<std::string> evaluated_steps(const std::vector<std::string>& lines) {
  std::vector<std::string> out;
  for (const auto& line : lines)
    if (line.find(" eval/reward=") != std::string::npos)
      out.push_back(line.substr(0, line.find(' ', 5)));
  return out;
}

TEST(PromptEvaluation, IsRecordedBeforeTheFirstStepAndAtTheEndsOfRolloutSteps) {
  const auto lines = run_grpo(plan_of(7), evaluated_config(), held_out_rows(1, 3)).lines;
  EXPECT_EQ(lines.front().substr(0, 19), "step 0 eval/reward=");
  EXPECT_THAT(evaluated_steps(lines), ElementsAre("step 0", "step 4", "step 6", "step 7"))
      << "two steps per rollout step; step 3 is in the middle of one";
  EXPECT_THAT(evaluated_steps(run_grpo(plan_of(5), evaluated_config(), held_out_rows(1, 0)).lines),
              ElementsAre("step 0", "step 5"));
}

TEST(PromptEvaluation, ChangesNothingOfTheTraining) {
  auto remax = evaluated_config();
  remax.group = 1;
  remax.advantage.estimator = Estimator::remax;
  auto refilled = evaluated_config();
  refilled.dynamic.on = true;
  for (const auto& config : {evaluated_config(), remax, refilled}) {
    const auto without = run_grpo(plan_of(6, 2), config, {});
    const auto with = run_grpo(plan_of(6, 2), config, held_out_rows(3, 1));
    EXPECT_EQ(training_of(with.lines), without.lines);
    EXPECT_EQ(with.saved, without.saved);
  }
  PpoConfig ppo_settings;
  ppo_settings.epochs = 2;
  ppo_settings.sampling.max_new_tokens = 8;
  const auto with = run_ppo(plan_of(6, 2), ppo_settings, held_out_rows(1, 2));
  EXPECT_THAT(evaluated_steps(with.lines), ElementsAre("step 0", "step 2", "step 4", "step 6"));
  const auto without = run_ppo(plan_of(6, 2), ppo_settings, {});
  EXPECT_EQ(training_of(with.lines), without.lines);
  EXPECT_EQ(with.saved, without.saved);
}

TEST(PromptEvaluation, DoesNotDependOnRolloutsChunksAndBatches) {
  auto at_once = held_out_rows(3);
  at_once.samples_at_once = 1000;
  const auto expected = run_grpo(plan_of(4), evaluated_config(), held_out_rows(3)).lines;
  EXPECT_EQ(run_grpo(plan_of(4), evaluated_config(), at_once).lines, expected);
  EXPECT_EQ(run_grpo(plan_of(4), evaluated_config(), held_out_rows(3), 3, 2).lines, expected);
}

TEST(PromptEvaluation, OfAResumedRunHasNoStepZero) {
  auto plan = plan_of(6);
  plan.done = 2;
  EXPECT_THAT(evaluated_steps(run_grpo(plan, evaluated_config(), held_out_rows()).lines),
              ElementsAre("step 4", "step 6"));
}

TEST(PromptEvaluation, DrawsTheSameSamplesHoweverManyThereAre) {
  const auto evaluated = held_out_rows();
  const auto prompts = eval_prompts(evaluated.rows, 3, 10);
  ASSERT_EQ(prompts.ids.size(), 2u) << "rows 3 and 4";
  const auto ids = [&](int samples) {
    std::vector<std::uint64_t> out;
    for (const auto& request :
         sample_requests(prompts, eval_rollout_options(held_out_rows(samples))))
      out.push_back(request.sample_id);
    return out;
  };
  const auto two = ids(2), four = ids(4);
  EXPECT_THAT(two, ElementsAre(four[0], four[1], four[4], four[5]));
  EXPECT_EQ(std::set(four.begin(), four.end()).size(), 8u);
  EXPECT_GE(*std::ranges::min_element(four), std::uint64_t{1} << 62) << "no sample of the training";
}

// Two prompts of four completions with these rewards; the first has a failure.
RolloutBatch two_prompts() {
  RolloutBatch all;
  for (const double reward : {-1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0}) {
    protocol::RewardResult result{reward, {{"right", reward}}, ""};
    if (reward < 0)
      result = {std::nullopt, {}, "no answer", {}, 0, {protocol::FailureKind::timeout}};
    all.rewards.push_back(std::move(result));
    all.completions.push_back({0, {1, 2}, {}, {}, "", protocol::FinishReason::stop, {}, 0});
  }
  return all;
}

double value_of(const Metrics& metrics, const std::string& name) {
  for (const auto& [each, value] : metrics)
    if (each == name) return value;
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

TEST(PromptEvaluation, ReportsRewardsAndPassAtK) {
  auto settings = held_out_rows(4);
  settings.pass_reward = 1;
  const auto metrics = evaluation_metrics(two_prompts(), settings);
  EXPECT_DOUBLE_EQ(value_of(metrics, "eval/reward"), 4.0 / 7) << "without the failure";
  EXPECT_DOUBLE_EQ(value_of(metrics, "eval/rewards/right/mean"), 4.0 / 7);
  EXPECT_EQ(value_of(metrics, "eval/rewards/failed/timeout"), 1);
  EXPECT_DOUBLE_EQ(value_of(metrics, "eval/pass@1"), (1.0 / 4 + 3.0 / 4) / 2)
      << "the failure does not pass";
  EXPECT_DOUBLE_EQ(value_of(metrics, "eval/pass@2"), (pass_at_k(4, 1, 2) + 1) / 2);
  EXPECT_DOUBLE_EQ(value_of(metrics, "eval/pass@4"), 1);
  EXPECT_EQ(value_of(metrics, "eval/completions/mean_length"), 2);
  EXPECT_EQ(value_of(metrics, "eval/completions/clipped_ratio"), 0);
}

TEST(PromptEvaluation, WithoutARewardHasNoMean) {
  auto all = two_prompts();
  for (auto& result : all.rewards) result = {std::nullopt, {}, "no answer"};
  EXPECT_TRUE(std::isnan(value_of(evaluation_metrics(all, held_out_rows(4)), "eval/reward")));
}

TrainingPlan selecting(std::int64_t steps, const char* metric, std::int64_t patience) {
  auto plan = plan_of(steps);
  const auto selected = value_or_throw(selection_metric(metric));
  plan.selection = ModelSelection(selected, selected, patience);
  return plan;
}

TEST(Selection, SavesTheBestStepAndEndsTheRun) {
  // A metric that is the same in every evaluation: the first one is the best.
  const auto kept = run_grpo(selecting(20, "-eval/completions/mean_length", 3), evaluated_config(),
                             held_out_rows());
  EXPECT_THAT(kept.saved, ElementsAre(StartsWith("2 {"), StartsWith("8 {")))
      << "the best step, and the last one after three evaluations without an improvement";
  EXPECT_THAT(kept.saved, testing::Each(HasSubstr("best_step=2")));
  EXPECT_THAT(kept.lines.back(), StartsWith("step 8 "));
}

TEST(Selection, EndsARunOverRows) {
  engine::data::Dataset<SftExample> rows;
  for (int i = 0; i < 8; ++i) rows.examples.push_back({{4, 9, 2}, {0, 1, 1}, false});
  Loader<SftExample> data(rows, three_a_step);
  HeldOut evaluated{.batches = {engine::data::to_experience(in_batches(rows.examples, 8).front())},
                    .every = 1};
  OneThread bench;
  // The fake policy's log-probabilities are its weight, which falls.
  bench.run(
      train(bench.stage.cluster, data, selecting(20, "eval/loss", 2), SftConfig(), evaluated));
  EXPECT_THAT(bench.stage.journal.lines.back(), StartsWith("step 3 "));
  EXPECT_THAT(bench.stage.saved, ElementsAre(HasSubstr("best_step=1"), HasSubstr("best_step=1")));
}

}  // namespace
}  // namespace troupe::algorithms

// The loops of reward models over fake actors, and rewards by models together with those by rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/runtime/run.h"
#include "actors/runtime/virtual_scheduler.h"
#include "algorithms/reward_model.h"
#include "algorithms/rollout/sampling.h"
#include "tests/algorithms/fakes.h"
#include "transports/inproc/loopback.h"

namespace troupe::algorithms {
namespace {

using testing::AllOf;

struct FakeReward {
  using Handled = actors::Messages<protocol::ComputeRewards>;
  std::vector<protocol::RewardResult> on(protocol::ComputeRewards m) {
    std::vector<protocol::RewardResult> results;
    for (const auto& sample : m.requests)
      results.push_back({static_cast<double>(sample.completion_ids.front()),
                         {{"model", 1}},
                         "",
                         {{0, 0.5}},
                         0.5});
    return results;
  }
};

struct RewardWorld {
  actors::VirtualScheduler scheduler;
  transports::Loopback transport;
  actors::Node node{"home", scheduler, transport};
  std::vector<std::string> saved;
  Remembering journal;
  actors::Stop stop;
  Cluster cluster{node.spawn("policy", FakePolicy{&saved}), {}, {}, {}, journal, stop};
  void run(Task<void> task) { actors::run(node, std::move(task)); }
};

TrainingPlan reward_plan(std::int64_t steps, std::int64_t save_every = 0) {
  const auto schedule = value_or_throw(engine::optim::Schedule::create(
      engine::optim::ScheduleKind::constant, {.total_steps = steps}));
  return {.steps = steps, .save_every = save_every, .learning_rate = 0.01, .schedule = schedule};
}

Loader<PairExample> five_seeded_pairs() {
  engine::data::Dataset<PairExample> rows;
  for (int i = 0; i < 8; ++i)
    rows.examples.push_back({{{i, i + 1}, {0, 1}}, {{i, i + 2, 5}, {0, 1, 1}}});
  return {std::move(rows), {.batch_size = 3, .seed = 5}};
}

Loader<StepExample> solutions() {
  engine::data::Dataset<StepExample> rows;
  for (int i = 0; i < 8; ++i) rows.examples.push_back({{i, i + 1, i + 2}, {-1, 1, 0}});
  return {std::move(rows), {.batch_size = 3, .seed = 5}};
}

TEST(RewardLoops, AnOutcomeModelIsTrainedSavedAndEvaluatedOnHeldOutPairs) {
  RewardWorld world;
  auto data = five_seeded_pairs();
  const PairExample better{{{1, 9}, {0, 1}}, {{1, 4}, {0, 1}}},
      worse{{{1, 2}, {0, 1}}, {{1, 6}, {0, 1}}};
  HeldOut held_out{.batches = {engine::data::to_scored_pairs({{&better}, {0}}),
                               engine::data::to_scored_pairs({{&worse}, {1}})},
                   .every = 2};
  world.run(orm(world.cluster, data, reward_plan(5, 2), OrmLoss{}, held_out));
  EXPECT_THAT(world.saved, ElementsAre(StartsWith("2 "), StartsWith("4 "), StartsWith("5 ")));
  ASSERT_EQ(world.journal.lines.size(), 5u);
  const auto& steps = world.journal.records;
  EXPECT_THAT(steps[0], Not(has_evaluation()));
  // Fake scores are the last tokens: 9 above 4, 2 below 6.
  EXPECT_THAT(steps[1], AllOf(has_metric("eval/accuracy", 0.5), has_metric("eval/margin", 0.5),
                              has_metric("eval/max_reward", 9)));
  EXPECT_THAT(steps[4], has_metric("eval/loss")) << "the last step is evaluated";
}

TEST(RewardLoops, AProcessModelIsTrainedAndEvaluatedOnEveryStepOfHeldOutRows) {
  RewardWorld world;
  auto data = solutions();
  const StepExample row{{1, 3, 0}, {-1, 0, 1}};
  world.run(prm(world.cluster, data, reward_plan(3), PrmLoss{},
                {.batches = {engine::data::to_experience({{&row}, {0}})}}));
  ASSERT_EQ(world.journal.lines.size(), 3u);
  EXPECT_THAT(world.journal.records[1], Not(has_evaluation()));
  // Token 3 scores (3, 0), and is of class 0; token 0 scores (0, 0), a tie.
  EXPECT_THAT(world.journal.records[2], has_metric("eval/accuracy", 1));
}

TEST(RewardLoops, GoOnWhereTheyStopped) {
  RewardWorld whole, first, second;
  auto data = five_seeded_pairs(), before = five_seeded_pairs(), after = five_seeded_pairs();
  whole.run(orm(whole.cluster, data, reward_plan(6), OrmLoss{}));
  first.run(orm(first.cluster, before, reward_plan(3), OrmLoss{}));
  ASSERT_THAT(first.saved, ElementsAre(StartsWith("3 ")));
  value_or_throw(after.restore(value_or_throw(parse_json(first.saved[0].substr(2), "saved"))));
  auto rest = reward_plan(6);
  rest.done = 3;
  second.run(orm(second.cluster, after, rest, OrmLoss{}));
  EXPECT_EQ(second.saved.back(), whole.saved.back()) << "the same place in the data";
}

RolloutBatch rollouts_with(bool rules, bool models) {
  RewardWorld world;
  auto rollout = world.node.spawn("rollout", FakeRollout{});
  world.cluster.rollouts = {rollout};
  if (rules) world.cluster.verifier = world.node.spawn("verifier", FakeVerifier{});
  if (models) world.cluster.reward = world.node.spawn("reward", FakeReward{});
  const engine::data::PromptRow prompt{{4, 9}, "prompt", Json(), Json()};
  const PromptBatch prompts{{&prompt}, {0}};
  RolloutOptions config;
  config.group = 2;
  RolloutBatch out;
  const auto round = [&]() -> Task<void> {
    protocol::Weights weights{
        1, 1, std::make_shared<const std::vector<float>>(1, 1.0f), {}, {{}, {1.0f}}};
    protocol::PrepareWeights prepare{weights};
    auto preparing = rollout.ask(std::move(prepare));
    co_await preparing.get();
    protocol::CommitWeights commit{1};
    auto committing = rollout.ask(std::move(commit));
    co_await committing.get();
    auto sampling = sample_rollouts(world.cluster, prompts, config, false);
    out = co_await sampling;
  };
  world.run(round());
  return out;
}

TEST(RewardLoops, ModelsRewardBesideRulesOrInsteadOfThem) {
  const auto by_rules = rollouts_with(true, false).rewards,
             by_models = rollouts_with(false, true).rewards,
             by_both = rollouts_with(true, true).rewards;
  ASSERT_EQ(by_both.size(), 2u);
  for (std::size_t n = 0; n < by_both.size(); ++n) {
    EXPECT_EQ(*by_both[n].reward, *by_rules[n].reward + *by_models[n].reward);
    EXPECT_EQ(by_both[n].steps.size(), 1u);
    EXPECT_EQ(by_both[n].from_steps, 0.5);
  }
}

}  // namespace
}  // namespace troupe::algorithms

// The loops of the algorithms over fake actors: the journal does not depend on threads, delays,
// repetition, the number of rollouts or an interruption, and checkpoints follow the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/dpo.h"
#include "algorithms/grpo.h"
#include "algorithms/sft.h"
#include "tests/algorithms/stage.h"

namespace troupe::algorithms {
namespace {

Loader<SftExample> sft_rows() {
  engine::data::Dataset<SftExample> rows;
  for (int i = 0; i < 8; ++i) rows.examples.push_back({{i, i + 1, i + 2}, {0, 1, 1}});
  return {std::move(rows), three_a_step};
}
Loader<PairExample> loop_pairs() {
  engine::data::Dataset<PairExample> rows;
  for (int i = 0; i < 8; ++i)
    rows.examples.push_back({{{i, i + 1}, {0, 1}}, {{i, i + 2, 5}, {0, 1, 1}}});
  return {std::move(rows), three_a_step};
}

GrpoConfig grpo_config() {
  GrpoConfig config;
  config.group = 4;
  config.epochs = 2;
  config.loss.beta = 0.1;
  config.sampling.max_new_tokens = 8;
  return config;
}

std::vector<std::string> grpo_over_threads(int rollouts, std::size_t pieces = 1) {
  actors::ThreadScheduler scheduler;
  transports::Loopback transport;
  Stage stage(scheduler, transport, rollouts);
  stage.cluster.chunks_per_rollout = pieces;
  auto data = prompts();
  actors::run(stage.home, grpo(stage.cluster, data, plan_of(6), grpo_config()));
  return stage.journal.lines;
}

std::vector<std::string> grpo_over_simulation(std::uint64_t seed, test::Faults faults) {
  actors::VirtualScheduler scheduler(seed);
  test::SimulatedTransport network(
      seed, faults, [&](auto delay, auto job) { scheduler.later(delay, std::move(job)); });
  Stage stage(scheduler, network, 2);
  auto data = prompts();
  actors::run(stage.home, grpo(stage.cluster, data, plan_of(6), grpo_config()));
  return stage.journal.lines;
}

TEST(Loops, GrpoOverTheSimulatorKeepsTheJournalThatRealThreadsKeep) {
  const auto threads = grpo_over_threads(2);
  ASSERT_THAT(threads, testing::Contains(StartsWith("step 6 loss=")));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const test::Faults faults{.max_delay = std::chrono::milliseconds(50), .repeat = 0.3};
    EXPECT_EQ(grpo_over_simulation(seed, faults), threads) << "seed " << seed;
  }
}

TEST(Loops, TheNumberOfRolloutsChangesNothing) {
  const auto one = grpo_over_threads(1);
  EXPECT_EQ(grpo_over_threads(2), one);
  EXPECT_EQ(grpo_over_threads(5), one);
  EXPECT_EQ(grpo_over_threads(40), one) << "more rollouts than samples";
}

TEST(Loops, ScoringInPiecesChangesNothing) {
  const auto one = grpo_over_threads(1);
  for (const std::size_t pieces : {2, 3, 50})
    EXPECT_EQ(grpo_over_threads(2, pieces), one) << pieces << " pieces";
}

TEST(Loops, ARolloutThatDisagreesOnTheProbeIsNamedAndNoneTakesTheWeights) {
  actors::ThreadScheduler scheduler;
  transports::Loopback transport;
  Stage stage(scheduler, transport, 1);
  FakeRollout wrong;
  wrong.probe_error = 1;
  stage.cluster.rollouts.push_back(stage.home.ref(
      stage.away.spawn("wrong", std::move(wrong)).address(), FakeRollout::Handled{}));
  auto data = prompts();
  try {
    actors::run(stage.home, grpo(stage.cluster, data, plan_of(6), grpo_config()));
    FAIL() << "the weights were taken";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Errc::corrupt);
    EXPECT_THAT(failure.error().what, testing::HasSubstr("away/wrong"));
  }
  EXPECT_TRUE(stage.journal.lines.empty());
}

TEST(Loops, ALostMessageEndsGrpoWithATimeoutThatNamesIt) {
  try {
    grpo_over_simulation(1, {.loss = 1});
    FAIL() << "nothing can have been answered";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Errc::timeout);
  }
}

TEST(Loops, CheckpointsComeWhenThePlanSaysAndAtTheEnd) {
  OneThread world;
  auto data = sft_rows();
  world.run(train(world.stage.cluster, data, plan_of(7, 3), SftConfig(), {}));
  EXPECT_THAT(world.stage.saved, ElementsAre(StartsWith("3 "), StartsWith("6 "), StartsWith("7 ")));
  EXPECT_EQ(world.stage.journal.lines.size(), 7u);
}

TEST(Loops, AStopFinishesItsStepSavesAndLeaves) {
  OneThread world;
  auto data = sft_rows();
  world.stage.stop.request();
  world.run(train(world.stage.cluster, data, plan_of(7), SftConfig(), {}));
  EXPECT_THAT(world.stage.saved, ElementsAre(StartsWith("1 ")));
}

TEST(Loops, SeveralUpdatesOfOneBatchAreSavedTogetherWithItsPlace) {
  OneThread world;
  auto data = prompts();
  world.run(grpo(world.stage.cluster, data, plan_of(8, 3), grpo_config()));
  EXPECT_THAT(world.stage.saved, ElementsAre(StartsWith("4 "), StartsWith("6 "), StartsWith("8 ")));
}

TEST(Loops, DpoMayAskTheReferenceBeforehandOrAtEachStep) {
  std::vector<std::vector<std::string>> journals;
  for (const bool beforehand : {false, true}) {
    OneThread world;
    auto data = loop_pairs();
    DpoConfig config;
    config.precompute_reference = beforehand;
    world.run(train(world.stage.cluster, data, plan_of(9), config, {}));
    journals.push_back(world.stage.journal.lines);
    EXPECT_EQ(journals.back().size(), 9u);
  }
  EXPECT_EQ(journals[0], journals[1]);
}

/// Records its messages, and answers as FakePolicy or, to FinishSave where `full`, with an
/// error.
struct RecordingPolicy {
  using Handled = FakePolicy::Handled;
  FakePolicy policy;
  std::vector<std::string>* asked;
  bool full = false;

  auto on(protocol::TrainStep m) {
    asked->emplace_back("train");
    return policy.on(std::move(m));
  }
  auto on(protocol::Logprobs m) { return policy.on(std::move(m)); }
  auto on(protocol::Score m) { return policy.on(std::move(m)); }
  auto on(protocol::Publish m) { return policy.on(m); }
  auto on(protocol::Save m) {
    asked->push_back(cat("save ", m.step, m.overlapped ? " overlapped" : ""));
    return policy.on(std::move(m));
  }
  Result<std::string> on(protocol::FinishSave m) {
    asked->emplace_back(m.wait ? "finish" : "ask");
    if (full) return fail(Errc::io, "checkpoint-2: the disk is full");
    return policy.on(m);
  }
};

TEST(Loops, TrainWhileACheckpointIsWrittenAndWaitForItBeforeTheNext) {
  OneThread world;
  std::vector<std::string> asked;
  world.stage.cluster.policy =
      world.stage.home.spawn("recording", RecordingPolicy{{&world.stage.saved}, &asked});
  auto data = sft_rows();
  world.run(train(world.stage.cluster, data, plan_of(7, 2), SftConfig(), {}));
  EXPECT_THAT(asked, ElementsAre("train", "train", "save 2 overlapped",                   //
                                 "train", "ask", "train", "finish", "save 4 overlapped",  //
                                 "train", "ask", "train", "finish", "save 6 overlapped",  //
                                 "train", "finish", "save 7"));
}

TEST(Loops, EndWithTheErrorOfACheckpointThatWasBeingWritten) {
  for (const std::int64_t steps : {3, 8}) {
    OneThread world;
    std::vector<std::string> asked;
    world.stage.cluster.policy =
        world.stage.home.spawn("recording", RecordingPolicy{{&world.stage.saved}, &asked, true});
    auto data = sft_rows();
    try {
      world.run(train(world.stage.cluster, data, plan_of(steps, 2), SftConfig(), {}));
      FAIL() << steps;
    } catch (const Failure& failure) {
      EXPECT_THAT(failure.error().what, testing::HasSubstr("checkpoint-2: the disk is full"));
    }
  }
}

}  // namespace
}  // namespace troupe::algorithms

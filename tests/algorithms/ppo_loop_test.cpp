// PPO's loop over fake actors: the journal does not depend on threads, delays, the number of
// rollouts or an interruption, and the critic's checkpoint precedes the policy's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/ppo.h"
#include "tests/algorithms/stage.h"

namespace troupe::algorithms {
namespace {

PpoConfig ppo_config() {
  PpoConfig config;
  config.epochs = 2;
  config.sampling.max_new_tokens = 8;
  config.control.schedule = KlSchedule::adaptive;
  config.control.horizon = 40;
  return config;
}

CriticPlan critic_plan() {
  return {.learning_rate = 0.02, .schedule = plan_of(1).schedule};
}

/// Runs PPO with a critic and keeps the journal and the checkpoints.
struct Kept {
  std::vector<std::string> lines, saved;
};

Kept over_threads(int rollouts, TrainingPlan plan = plan_of(6), PpoConfig config = ppo_config(),
                  std::size_t pieces = 1) {
  actors::ThreadScheduler scheduler;
  transports::Loopback transport;
  Stage stage(scheduler, transport, rollouts);
  stage.cluster.critic =
      stage.home.spawn("critic", FakeCritic{{&stage.saved}}, {.executor = "critic"});
  stage.cluster.chunks_per_rollout = pieces;
  auto data = prompts();
  actors::run(stage.home, ppo(stage.cluster, data, plan, critic_plan(), config));
  return {stage.journal.lines, stage.saved};
}

std::vector<std::string> over_simulation(std::uint64_t seed, test::Faults faults) {
  actors::VirtualScheduler scheduler(seed);
  test::SimulatedTransport network(
      seed, faults, [&](auto delay, auto job) { scheduler.later(delay, std::move(job)); });
  Stage stage(scheduler, network, 2);
  stage.cluster.critic = stage.home.ref(
      stage.away.spawn("critic", FakeCritic{{&stage.saved}}, {.executor = "critic"}).address(),
      FakeCritic::Handled{});
  auto data = prompts();
  actors::run(stage.home, ppo(stage.cluster, data, plan_of(6), critic_plan(), ppo_config()));
  return stage.journal.lines;
}

TEST(PpoLoop, OverTheSimulatorKeepsTheJournalThatRealThreadsKeep) {
  const auto threads = over_threads(2).lines;
  ASSERT_THAT(threads, testing::Contains(StartsWith("step 6 loss=")));
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const test::Faults faults{.max_delay = std::chrono::milliseconds(50), .repeat = 0.3};
    EXPECT_EQ(over_simulation(seed, faults), threads) << "seed " << seed;
  }
}

TEST(PpoLoop, TheNumberOfRolloutsAndPiecesChangesNothing) {
  const auto one = over_threads(1).lines;
  EXPECT_EQ(over_threads(3).lines, one);
  EXPECT_EQ(over_threads(2, plan_of(6), ppo_config(), 3).lines, one);
}

TEST(PpoLoop, TheCriticIsSavedBeforeThePolicyThatCommitsTheStep) {
  const auto kept = over_threads(1, plan_of(6, 4));
  EXPECT_THAT(kept.saved,
              ElementsAre("critic 4", StartsWith("4 {"), "critic 6", StartsWith("6 {")));
  EXPECT_THAT(kept.saved[1], HasSubstr("\"kl_coef\""));
}

/// Records the messages of saves and what was durable when they were answered.
template <class Fake>
struct Recording {
  using Handled = typename Fake::Handled;
  Fake fake;
  std::string name;
  std::vector<std::string>* said;
  bool full = false;  ///< the disk

  template <class Message>
  auto on(Message m) {
    return fake.on(std::move(m));
  }
  std::string on(protocol::Save m) {
    said->push_back(cat(name, " begins ", m.step));
    return answered(fake.on(std::move(m)));
  }
  Result<std::string> on(protocol::FinishSave m) {
    if (full) return fail(Errc::io, cat(name, ": the disk is full"));
    return answered(fake.on(m));
  }
  std::string answered(std::string path) {
    if (!path.empty()) said->push_back(cat(path, " is durable"));
    return path;
  }
};

std::vector<std::string> saves(bool overlaps) {
  OneThread world;
  std::vector<std::string> said;
  Stage& stage = world.stage;
  stage.cluster.overlaps_saves = overlaps;
  stage.cluster.policy =
      stage.home.spawn("recorded", Recording<FakePolicy>{{&stage.saved}, "policy", &said});
  stage.cluster.critic =
      stage.home.spawn("critic", Recording<FakeCritic>{{{&stage.saved}}, "critic", &said});
  auto data = prompts();
  world.run(ppo(stage.cluster, data, plan_of(8, 4), critic_plan(), ppo_config()));
  return said;
}

TEST(PpoLoop, BothTrainOnWhileTheySaveAndTheCriticIsDurableFirst) {
  EXPECT_THAT(saves(true), ElementsAre("critic begins 4", "policy begins 4",
                                       "critic/checkpoint-4 is durable", "checkpoint-4 is durable",
                                       "critic begins 8", "critic/checkpoint-8 is durable",
                                       "policy begins 8", "checkpoint-8 is durable"));
  EXPECT_THAT(saves(false), ElementsAre("critic begins 4", "critic/checkpoint-4 is durable",
                                        "policy begins 4", "checkpoint-4 is durable",
                                        "critic begins 8", "critic/checkpoint-8 is durable",
                                        "policy begins 8", "checkpoint-8 is durable"));
}

TEST(PpoLoop, WithoutTheCriticsCheckpointThatOfThePolicyIsNotCompleted) {
  OneThread world;
  std::vector<std::string> said;
  Stage& stage = world.stage;
  stage.cluster.policy =
      stage.home.spawn("recorded", Recording<FakePolicy>{{&stage.saved}, "policy", &said});
  stage.cluster.critic =
      stage.home.spawn("critic", Recording<FakeCritic>{{{&stage.saved}}, "critic", &said, true});
  auto data = prompts();
  const auto expect_failure = [&](actors::Task<void> task) {
    try {
      world.run(std::move(task));
      FAIL() << "the critic was saved";
    } catch (const Failure& failure) {
      EXPECT_THAT(failure.error().what, HasSubstr("critic: the disk is full"));
    }
  };
  expect_failure(ppo(stage.cluster, data, plan_of(8, 4), critic_plan(), ppo_config()));
  expect_failure(
      finish_saves(stage.cluster.critic, stage.cluster.policy, std::chrono::seconds(10)));
  EXPECT_THAT(said, ElementsAre("critic begins 4", "policy begins 4"));
}

TEST(PpoLoop, WhileTheCriticWarmsUpThePolicyStays) {
  auto config = ppo_config();
  config.critic_warmup = 2;
  const auto lines = over_threads(1, plan_of(6), config).lines;
  std::vector<std::string> steps;
  for (const auto& line : lines)
    if (line.starts_with("step ")) steps.push_back(line);
  ASSERT_EQ(steps.size(), 6u);
  const auto without_change = over_threads(1, plan_of(6), ppo_config()).lines;
  EXPECT_NE(lines, without_change);
  // Two rollout steps of two updates: only the critic's metrics are recorded at first, then also
  // the policy's.
  for (std::size_t i = 0; i < 6; ++i) {
    const auto first = steps[i].find("loss/value_avg="), loss = steps[i].find(" loss=");
    ASSERT_NE(first, std::string::npos);
    const auto number = [&](std::size_t at) {
      return steps[i].substr(
          steps[i].find('=', at) + 1,
          steps[i].find(' ', steps[i].find('=', at)) - steps[i].find('=', at) - 1);
    };
    EXPECT_EQ(number(first) == number(loss), i < 4) << steps[i];
  }
}

TEST(PpoLoop, AnAdaptiveCoefficientMovesFromRoundToRound) {
  const auto coefficient = [](const std::string& line) {
    const auto at = line.find("objective/kl_coef=");
    return line.substr(at, line.find(' ', at) - at);
  };
  std::vector<std::string> steps;
  for (const auto& line : over_threads(1).lines)
    if (line.starts_with("step ")) steps.push_back(coefficient(line));
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(steps[0], "objective/kl_coef=0.05");
  EXPECT_EQ(steps[0], steps[1]) << "a round has one";
  EXPECT_NE(steps[1], steps[2]);
}

TEST(PpoLoop, RecomputedLogProbabilitiesSayHowFarTheRolloutsAre) {
  auto config = ppo_config();
  const auto given = over_threads(1, plan_of(2), config).lines;
  config.recompute_old = true;
  const auto asked = over_threads(1, plan_of(2), config).lines;
  EXPECT_NE(asked, given)
      << "the fake policy's log-probabilities are others than the fake rollout's";
  EXPECT_THAT(asked, testing::Contains(HasSubstr("sampling/sampling_logp_difference/mean=")));
  EXPECT_THAT(given, testing::Each(testing::Not(HasSubstr("sampling/"))));
}

TEST(PpoLoop, WithoutAKlCoefficientNobodyAsksAReference) {
  auto config = ppo_config();
  config.kl_coef = 0;
  actors::ThreadScheduler scheduler;
  transports::Loopback transport;
  Stage stage(scheduler, transport, 1);
  stage.cluster.critic = stage.home.spawn("critic", FakeCritic{{&stage.saved}});
  stage.cluster.reference.reset();
  auto data = prompts();
  actors::run(stage.home, ppo(stage.cluster, data, plan_of(2), critic_plan(), config));
  EXPECT_EQ(stage.journal.lines.size(), 4u + 2u - 1u) << "three samples and two steps";
}

}  // namespace
}  // namespace troupe::algorithms

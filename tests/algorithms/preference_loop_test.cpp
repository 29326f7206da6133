// The loops over pairs and over single answers, with fake actors: when held-out rows are evaluated,
// when a reference is updated and saved, and the batch on which KTO's KL is estimated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/cpo.h"
#include "algorithms/dpo.h"
#include "algorithms/kto.h"
#include "algorithms/orpo.h"
#include "algorithms/simpo.h"
#include "tests/algorithms/stage.h"

namespace troupe::algorithms {
namespace {

Loader<PairExample> pairs() {
  engine::data::Dataset<PairExample> rows;
  for (int i = 0; i < 8; ++i)
    rows.examples.push_back({{{i, i + 1}, {0, 1}}, {{i, i + 2, 5}, {0, 1, 1}}});
  return {std::move(rows), three_a_step};
}

Loader<UnpairedExample> answers() {
  engine::data::Dataset<UnpairedExample> rows;
  for (int i = 0; i < 8; ++i) rows.examples.push_back({{i}, {i + 1, 5}, {1, 1}, i % 3 == 0});
  return {std::move(rows), three_a_step};
}

HeldOut held_out(std::int64_t every, bool nll_on_prompt = false) {
  const auto data = pairs();
  HeldOut out{.batches = {}, .every = every};
  for (const auto& batch : in_batches(data.dataset().examples, 3))
    out.batches.push_back(pair_batch(batch, nll_on_prompt));
  return out;
}

std::string without_eval(const std::string& line) {
  return line.substr(0, line.find(" eval/"));
}

/// A reference with one weight, updated as in TR-DPO.
struct FakeFollower {
  using Handled = actors::Messages<protocol::Logprobs, protocol::Release, protocol::PrepareWeights,
                                   protocol::MixWeights, protocol::Save>;
  std::vector<std::string>* log;
  double weight = 1, prepared = 0;
  std::vector<float> on(protocol::Logprobs m) {
    return std::vector<float>(m.batch.tokens.size(), static_cast<float>(-weight));
  }
  void on(protocol::Release) {}
  std::vector<float> on(protocol::PrepareWeights m) {
    prepared = static_cast<double>(m.weights.values->front());
    return m.weights.probe.logp;
  }
  void on(protocol::MixWeights m) {
    weight = m.share * prepared + (1 - m.share) * weight;
    log->push_back(cat("mixed ", m.version));
  }
  std::string on(protocol::Save m) {
    log->push_back(cat("reference ", m.step));
    return "";
  }
};

FakeFollower& follow(OneThread& world) {
  auto follower = std::make_unique<FakeFollower>(FakeFollower{&world.stage.saved});
  FakeFollower& there = *follower;
  const auto ref = world.stage.home.spawn("follower", std::move(follower));
  world.stage.cluster.reference = ref;
  world.stage.cluster.synced_reference = ref;
  return there;
}

TEST(PreferenceLoops, EvaluateHeldOutPairsWhenTheyAreDueAndChangeNothingByIt) {
  OneThread plain, looking;
  auto data = pairs(), same = pairs();
  plain.run(train(plain.stage.cluster, data, plan_of(5), DpoConfig(), {}));
  looking.run(train(looking.stage.cluster, same, plan_of(5), DpoConfig(), held_out(2)));
  const auto &expected = plain.stage.journal.lines, &found = looking.stage.journal.lines;
  ASSERT_EQ(found.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(without_eval(found[i]), expected[i]);
    EXPECT_EQ(found[i].find("eval/loss") != std::string::npos, i == 1 || i == 3 || i == 4)
        << found[i];
  }
  EXPECT_THAT(found[1], HasSubstr("eval/rewards/margins="));
}

TEST(PreferenceLoops, AHeldOutLossIsTheMeanOverPairsOfUnequalBatches) {
  OneThread world;
  auto data = pairs();
  world.run(train(world.stage.cluster, data, plan_of(1), SimpoConfig(), held_out(0)));
  // Every token's log-probability is the policy's weight: all pairs have z = -gamma_beta_ratio,
  // whatever the batch they stand in.
  EXPECT_THAT(world.stage.journal.records.back(),
              has_metric("eval/loss", testing::DoubleNear(std::log1p(std::exp(0.5)), 1e-9)));
}

TEST(PreferenceLoops, EveryAlgorithmOverPairsRuns) {
  for (const int which : {0, 1, 2}) {
    OneThread world;
    auto data = pairs();
    world.stage.cluster.reference.reset();
    if (which == 0)
      world.run(train(world.stage.cluster, data, plan_of(4), SimpoConfig(), held_out(1)));
    if (which == 1)
      world.run(train(world.stage.cluster, data, plan_of(4), CpoConfig(), held_out(1)));
    if (which == 2)
      world.run(train(world.stage.cluster, data, plan_of(4), OrpoConfig(), held_out(1, true)));
    EXPECT_EQ(world.stage.journal.lines.size(), 4u);
    EXPECT_THAT(world.stage.saved, ElementsAre(StartsWith("4 ")));
  }
}

TEST(PreferenceLoops, TheLikelihoodOfPromptsHasTheirTokensInTheMaskAndAnswersBesideIt) {
  const auto data = pairs();
  const auto batch = in_batches(data.dataset().examples, 1).front();
  const auto with = pair_batch(batch, true), without = pair_batch(batch, false);
  EXPECT_EQ(with.answer, without.mask);
  EXPECT_TRUE(without.answer.empty());
  EXPECT_EQ(with.scale, 1);  // a sequence's first token has no probability
  EXPECT_EQ(without.count, 1);
}

TEST(PreferenceLoops, AFollowingReferenceMovesEveryFewStepsAndIsSavedBeforeThePolicy) {
  OneThread world;
  auto& follower = follow(world);
  auto data = pairs();
  world.run(train(world.stage.cluster, data, plan_of(5, 2),
                  DpoConfig{.loss = {}, .following = {.every = 2, .share = 0.5}}, {}));
  EXPECT_THAT(world.stage.saved,
              ElementsAre("mixed 2", "reference 2", StartsWith("2 "), "mixed 4", "reference 4",
                          StartsWith("4 "), "reference 5", StartsWith("5 ")));
  EXPECT_NE(follower.weight, 1);
}

TEST(PreferenceLoops, AReferenceThatCannotBeTheSameModelDoesNotMove) {
  struct Stranger : FakeFollower {
    using Handled = FakeFollower::Handled;
    using FakeFollower::on;
    std::vector<float> on(protocol::PrepareWeights) { return {7}; }
  };
  OneThread world;
  world.stage.cluster.synced_reference =
      world.stage.home.spawn("stranger", Stranger{{&world.stage.saved}});
  auto data = pairs();
  EXPECT_THROW(world.run(train(world.stage.cluster, data, plan_of(2),
                               DpoConfig{.loss = {}, .following = {.every = 1}}, {})),
               Failure);
  EXPECT_THAT(world.stage.saved, Not(Contains(StartsWith("mixed"))));
}

TEST(PreferenceLoops, KtoMeasuresItsKlOnOtherAnswersAndReportsTheMargin) {
  OneThread world;
  auto data = answers();
  HeldOutAnswers held;
  for (const auto& batch : in_batches(data.dataset().examples, 4)) {
    held.matched.batches.push_back(engine::data::to_experience(batch, 0));
    held.mismatched.push_back(engine::data::mismatched(batch, 0));
  }
  world.run(kto(world.stage.cluster, data, plan_of(3), {}, held));
  const auto& steps = world.stage.journal.records;
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_THAT(steps.back(), AllOf(has_metric("eval/rewards/margins"), has_metric("eval/kl")));
  EXPECT_THAT(steps.front(), Not(has_evaluation()));
}

TEST(PreferenceLoops, KtoOverTheSimulatorKeepsTheJournalThatOneThreadKeeps) {
  const auto over = [](test::Faults faults, std::uint64_t seed) {
    actors::VirtualScheduler scheduler(seed);
    test::SimulatedTransport network(
        seed, faults, [&](auto delay, auto job) { scheduler.later(delay, std::move(job)); });
    Stage stage(scheduler, network, 1);
    auto data = answers();
    actors::run(stage.home, kto(stage.cluster, data, plan_of(4), {}));
    return stage.journal.lines;
  };
  const auto calm = over({}, 0);
  for (std::uint64_t seed = 1; seed < 10; ++seed)
    EXPECT_EQ(over({.max_delay = std::chrono::milliseconds(50), .repeat = 0.3}, seed), calm)
        << "seed " << seed;
}

}  // namespace
}  // namespace troupe::algorithms

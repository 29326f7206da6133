// Actors whose models have score heads: trainer and scorer answer Score with the same bits, on one
// rank and on a grid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/roles/rollout.h"
#include "actors/roles/scorer.h"
#include "actors/roles/trainer.h"
#include "actors/roles/weights.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {
namespace {

namespace protocol = actors::protocol;
namespace roles = actors::roles;
using engine::loss::ReadAt;
using testing::HasSubstr;

const GridModel critic = scored(grid_models()[1], 2, true);

std::unique_ptr<engine::ops::Device> one_device() {
  return engine::ops::make_cpu_device({.threads = 1});
}

std::vector<float> ask_trainer(const Mesh& mesh, const protocol::Score& question) {
  const auto device = one_device();
  auto trainer = std::make_unique<engine::train::Trainer>(
      grid_decoder(*device, critic, 3, mesh, true), engine::train::TrainerOptions{}, &mesh);
  return roles::Trainer(std::move(trainer), {}, {}, &mesh).on(question);
}

protocol::Score question(ReadAt at) {
  return {full_batch(4, 6, 1, critic.spec.vocabulary), at, {}};
}

TEST(ScoreRoles, TrainerAndScorerSayTheSame) {
  const Mesh alone;
  const auto device = one_device();
  roles::Scorer scorer(grid_decoder(*device, critic, 3, alone, false), {.micro_batch_tokens = 30});
  for (const auto at : {ReadAt::before, ReadAt::token}) {
    const auto asked = question(at);
    const auto answer = ask_trainer(alone, asked);
    ASSERT_EQ(answer.size(), 2 * asked.batch.tokens.size());
    EXPECT_EQ(value_or_throw(scorer.on(asked)), answer);
    for (std::size_t i = 0; i < answer.size(); ++i)
      EXPECT_EQ(answer[i] == 0, asked.batch.mask[i / 2] == 0) << "score " << i;
  }
  EXPECT_NE(ask_trainer(alone, question(ReadAt::before)),
            ask_trainer(alone, question(ReadAt::token)));
  scorer.on(protocol::Release{});
  EXPECT_EQ(scorer.on(question(ReadAt::token)).error().code, Errc::closed);
}

TEST(ScoreRoles, AGroupGivesWhatOneRankGives) {
  const auto asked = question(ReadAt::before);
  const auto one = ask_trainer(Mesh(), asked);
  for (const auto& rank :
       on_grid({2, 2}, [&](const Mesh& mesh) { return ask_trainer(mesh, asked); })) {
    ASSERT_EQ(rank.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(rank[i], one[i], 1e-5);
  }
}

TEST(ScoreRoles, ALanguageModelAnswersForCandidatesAndForNothingElse) {
  const Mesh alone;
  const auto device = one_device();
  const GridModel policy = grid_models()[1];
  roles::Scorer scorer(grid_decoder(*device, policy, 3, alone, false), {});
  auto asked = question(ReadAt::token);
  EXPECT_THROW(scorer.on(asked), Failure);
  asked.candidates = {7, 3, 9};
  const auto answer = value_or_throw(scorer.on(asked));
  ASSERT_EQ(answer.size(), 3 * asked.batch.tokens.size());
  for (std::size_t i = 0; i < answer.size(); ++i)
    EXPECT_TRUE(asked.batch.mask[i / 3] == 0 ? answer[i] == 0 : answer[i] < 0);
}

TEST(ScoreRoles, WeightsOfACriticArePublishedAndNoRolloutTakesThem) {
  const Mesh alone;
  const auto device = one_device();
  engine::train::Trainer trained(grid_decoder(*device, critic, 3, alone, true), {}, &alone);
  const auto weights = roles::publish(trained, nullptr);
  EXPECT_TRUE(roles::verify(weights, critic.spec));
  EXPECT_EQ(weights.probe.logp.size(), 2 * weights.probe.tokens.size());
  const auto rollout =
      roles::Rollout::create(grid_decoder(*device, critic, 3, alone, false),
                             grid_decoder(*device, critic, 3, alone, false), {.pages = 20});
  ASSERT_FALSE(rollout);
  EXPECT_THAT(rollout.error().what, HasSubstr("score head"));
}

}  // namespace
}  // namespace troupe::test

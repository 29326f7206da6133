// A reference that follows the policy: it moves by exactly the mixture of the weights, whatever
// grid it lies on, and only by what was prepared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/roles/scorer.h"
#include "actors/roles/weights.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {
namespace {

namespace protocol = actors::protocol;
using actors::roles::Scorer;
using testing::HasSubstr;

const GridModel model = grid_models()[1];

// Weights published by a policy with other values.
protocol::Weights published() {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  engine::train::Trainer trainer(grid_decoder(*device, model, 7, Mesh(), true), {});
  return actors::roles::publish(trainer, nullptr);
}

struct Moved {
  std::vector<float> probe, weights;
};

// Moves twice and saves; the weights are those that save() saw.
Moved moved(const Mesh& mesh, const protocol::Weights& weights) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  Moved out;
  Scorer scorer(
      grid_decoder(*device, model, 3, mesh, false), {}, &mesh,
      [&](const protocol::Save& save, engine::models::Decoder& decoder) -> Result<std::string> {
        out.weights = engine::nn::gather_logical(decoder.parameters(), mesh);
        return std::to_string(save.step);
      });
  for (int move = 0; move < 2; ++move) {
    out.probe = value_or_throw(scorer.on(protocol::PrepareWeights{weights}));
    value_or_throw(scorer.on(protocol::MixWeights{weights.version, 0.6}));
  }
  EXPECT_EQ(value_or_throw(scorer.on(protocol::Save{4, {}})), "4");
  return out;
}

TEST(Follower, MovesByTheMixtureOfTheWeightsOnEveryGrid) {
  const auto weights = published();
  const auto alone = moved(Mesh(), weights);
  const auto start = random_values(static_cast<std::int64_t>(alone.weights.size()), 503, 0.5);
  for (std::size_t i = 0; i < start.size(); ++i) {
    float expected = start[i];
    for (int move = 0; move < 2; ++move) expected = 0.4f * expected + 0.6f * (*weights.values)[i];
    EXPECT_FLOAT_EQ(alone.weights[i], expected) << i;
  }
  EXPECT_THAT(alone.probe, testing::Pointwise(testing::FloatNear(1e-6f), weights.probe.logp));
  for (const Grid grid : {Grid{.tp = 2}, Grid{.dp = 2}, Grid{.dp = 2, .tp = 2}}) {
    const auto ranks = on_grid(grid, [&](const Mesh& mesh) { return moved(mesh, weights); });
    EXPECT_EQ(ranks.front().weights, alone.weights);
    for (const auto& rank : ranks)
      EXPECT_THAT(rank.probe, testing::Pointwise(testing::FloatNear(1e-5f), weights.probe.logp));
  }
}

TEST(Follower, MixesOnlyWhatWasPreparedAndOnlyOnce) {
  const auto weights = published();
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  Scorer scorer(
      grid_decoder(*device, model, 3, Mesh(), false), {}, nullptr,
      [](const protocol::Save&, engine::models::Decoder&) -> Result<std::string> { return ""; });
  EXPECT_THAT(scorer.on(protocol::MixWeights{weights.version, 0.6}).error().what,
              HasSubstr("nothing was"));
  ASSERT_TRUE(scorer.on(protocol::PrepareWeights{weights}));
  EXPECT_THAT(scorer.on(protocol::MixWeights{weights.version + 1, 0.6}).error().what,
              HasSubstr("were not prepared"));
  EXPECT_FALSE(scorer.on(protocol::MixWeights{weights.version, 1.5}));
  ASSERT_TRUE(scorer.on(protocol::MixWeights{weights.version, 0.6}));
  EXPECT_FALSE(scorer.on(protocol::MixWeights{weights.version, 0.6}));
}

TEST(Follower, AScorerThatNobodySavesDoesNotMove) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  Scorer scorer(grid_decoder(*device, model, 3, Mesh(), false), {});
  EXPECT_THAT(scorer.on(protocol::PrepareWeights{published()}).error().what,
              HasSubstr("stay as it is"));
  EXPECT_EQ(scorer.on(protocol::Save{1, {}}).error().code, Errc::bad_input);
}

}  // namespace
}  // namespace troupe::test

// Generation and scoring over pipeline stages: every rank returns the tokens, log-probabilities and
// scores of a model without stages, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/train/scoring.h"
#include "tests/support/generate_all.h"
#include "tests/support/stage_generation.h"

namespace troupe::test {
namespace {

using engine::generate::Generator;
using engine::ops::Precision;
using testing::HasSubstr;

void expect_the_text_of(const Grid& whole, const Grid& stages, const StageGeneration& run,
                        std::string (*text)(const StageGeneration&, const Mesh&)) {
  const auto one = on_grid(whole, [&](const Mesh& mesh) { return text(run, mesh); });
  EXPECT_GT(one[0].size(), 1000u);
  for (const std::string& rank : on_grid(stages, [&](const Mesh& mesh) { return text(run, mesh); }))
    EXPECT_EQ(rank, one[0]);
}

TEST(StageGeneration, HasTheBitsOfOneRankForAllFamilies) {
  for (const GridModel& model : staged_models())
    for (const int pp : {2, 4}) {
      SCOPED_TRACE(cat(model.title, ", pp ", pp));
      expect_the_text_of({}, {.pp = pp}, {.model = deep(model)}, generated_text);
    }
}

TEST(StageGeneration, HasTheBitsOfTensorParallelismAlone) {
  for (const auto order :
       {engine::parallel::AxisOrder::tp_cp_dp_pp, engine::parallel::AxisOrder::tp_cp_pp_dp})
    expect_the_text_of({.tp = 2}, {.tp = 2, .pp = 2, .order = order},
                       {.model = deep(grid_models()[1])}, generated_text);
}

TEST(StageGeneration, HasTheBitsOfOneRankWithBf16Int8AndUnevenLayers) {
  StageGeneration run{.model = deep(grid_models()[0]), .layers = {1, 4}};
  run.config.precision = Precision::bf16;
  expect_the_text_of({}, {.pp = 2}, run, generated_text);
  run.config.weights = engine::models::WeightFormat::int8;
  expect_the_text_of({}, {.pp = 2}, run, generated_text);
}

TEST(StageGeneration, HasTheBitsOfOneRankWithDrafts) {
  StageGeneration run{.model = deep(grid_models()[2]), .drafts = true};
  expect_the_text_of({}, {.pp = 3}, run, generated_text);
  run.drafts = false;
  run.config.lookup = 4;
  run.config.prefix_cache = true;
  expect_the_text_of({}, {.pp = 3}, run, generated_text);
}

TEST(StageGeneration, HasTheBitsOfOneRankWithVirtualStages) {
  for (const GridModel& model : {grid_models()[0], grid_models()[5]})
    for (const int pp : {2, 3}) {
      SCOPED_TRACE(cat(model.title, ", pp ", pp));
      expect_the_text_of({}, {.pp = pp}, {.model = deep(model, 7), .chunks = 2}, generated_text);
    }
  StageGeneration run{.model = deep(grid_models()[1]), .layers = {1, 2, 1, 1}, .chunks = 2};
  expect_the_text_of({.tp = 2}, {.tp = 2, .pp = 2}, run, generated_text);
  run.drafts = true;
  expect_the_text_of({}, {.pp = 2}, run, generated_text);
}

TEST(StageGeneration, BeamsHaveTheBitsOfOneRank) {
  for (const GridModel& model : {grid_models()[0], grid_models()[3]})
    expect_the_text_of({}, {.pp = 2}, {.model = deep(model)}, beams_text);
  expect_the_text_of({.tp = 2}, {.tp = 2, .pp = 2}, {.model = deep(grid_models()[1])}, beams_text);
}

// The ids and messages of the requests that fail while a damaged model generates.
std::vector<std::string> failures_of(const Mesh& mesh) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const GridModel model = deep(grid_models()[0]);
  const auto decoder = grid_decoder(*device, model, 7, mesh, false);
  if (auto* norm = decoder->parameters().find("model.norm.weight"))
    device->fill(norm->value, std::numeric_limits<float>::infinity());
  auto generator = value_or_throw(Generator::create(*decoder, {}));
  value_or_throw(test::submit_all(generator, mixed_requests(model.spec.vocabulary)));
  std::vector<std::string> failures;
  while (!generator.idle()) {
    try {
      generator.step();
    } catch (const engine::generate::RequestFailure& failure) {
      failures.push_back(cat(failure.id(), ": ", failure.error().what));
      generator.cancel(failure.id());
    }
  }
  return failures;
}

TEST(StageGeneration, AFailureOfTheLastStageIsOneOfEveryRank) {
  const auto one = failures_of(Mesh());
  ASSERT_GT(one.size(), 3u);
  EXPECT_THAT(one[0], HasSubstr("not finite"));
  for (const auto& rank : on_grid({.tp = 2, .pp = 2}, failures_of)) EXPECT_EQ(rank, one);
}

TEST(StageGeneration, ACacheHasTheLayersOfItsStage) {
  const auto layers = on_grid({.pp = 2}, [](const Mesh& mesh) {
    const auto device = engine::ops::make_cpu_device({.threads = 1});
    return grid_decoder(*device, deep(grid_models()[0]), 7, mesh, false)->make_cache(3).k.size();
  });
  EXPECT_EQ(layers, (std::vector<std::size_t>{3, 2}));
}

struct Scored {
  std::vector<float> logp, scores;
  bool operator==(const Scored&) const = default;
};

// Log-probabilities of a model, and scores of the same body with a score head, without gradients.
Scored scored_on(const GridModel& model, const Mesh& mesh) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const Experience batch = full_batch(5, 8, 2, model.spec.vocabulary);
  const engine::train::ScoringOptions options{.micro_batch_tokens = 60, .temperature = 0.7};
  auto* replicas = mesh.replicas().size() > 1 ? &mesh.replicas() : nullptr;
  const auto policy = grid_decoder(*device, model, 7, mesh, false);
  const auto critic = grid_decoder(*device, scored(model, 2, true), 7, mesh, false);
  return {
      engine::train::logprobs(*policy, batch, options, replicas),
      engine::train::scores(*critic, batch, engine::loss::ReadAt::before, {}, options, replicas)};
}

TEST(StageScoring, HasTheBitsOfOneRankForAllFamilies) {
  for (const GridModel& model : grid_models()) {
    const GridModel five = deep(model);
    const Scored one = scored_on(five, Mesh());
    EXPECT_GT(one.logp.size(), 50u);
    for (const Grid grid : {Grid{.pp = 2}, Grid{.pp = 4}, Grid{.dp = 2, .pp = 2}})
      for (const Scored& rank :
           on_grid(grid, [&](const Mesh& mesh) { return scored_on(five, mesh); }))
        EXPECT_EQ(rank, one) << five.title << ", " << to_string(grid);
    if (five.max_tp == 1) continue;
    const auto on = [&](Grid grid) {
      return on_grid(grid, [&](const Mesh& mesh) { return scored_on(five, mesh); });
    };
    const Scored divided = on({.tp = 2})[0];
    for (const Scored& rank : on({.tp = 2, .pp = 2})) EXPECT_EQ(rank, divided) << five.title;
  }
}

}  // namespace
}  // namespace troupe::test

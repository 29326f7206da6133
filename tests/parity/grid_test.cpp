// A group of ranks trains the model that one rank trains: losses, gradients, updates and
// log-probabilities do not depend on the grid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/losses/sft_loss.h"
#include "engine/models/split.h"
#include "engine/nn/gradients.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/partition.h"
#include "engine/train/trainer.h"
#include "tests/support/training_run.h"

namespace troupe::test {
namespace {

using engine::train::Trainer;
using testing::HasSubstr;

struct GridCase {
  GridModel model;
  Grid grid;
};
std::string grid_name(const GridCase& which) {
  const std::string stages = which.grid.pp > 1 ? cat("Pp", which.grid.pp) : "";
  const std::string context = which.grid.cp > 1 ? cat("Cp", which.grid.cp) : "";
  return cat(which.model.title, "Dp", which.grid.dp, "Tp", which.grid.tp, stages, context);
}
void PrintTo(const GridCase& which, std::ostream* out) {
  *out << grid_name(which);
}

struct Objective {
  engine::loss::AnyLoss loss;
  int unit;
};
std::vector<Objective> objectives() {
  algorithms::GrpoLoss grpo;
  grpo.beta = 0.1;
  grpo.entropy_coef = 0.01;
  grpo.temperature = 0.8;
  return {{algorithms::SftLoss{}, 1}, {algorithms::DpoLoss{}, 2}, {grpo, 1}};
}

/// A large eps keeps the step a smooth function of the gradient, so that updates can be compared at
/// all.
TrainingRun run_of(const GridModel& model, const Objective& objective, Experience batch) {
  return {.model = model,
          .loss = objective.loss,
          .batch = std::move(batch),
          .options = {.micro_batch_tokens = 60, .optimizer = {.eps = 1e-3}},
          .scored_after = 0,
          .temperature = objective.loss.needs().temperature,
          .keeps_gradient = true};
}

void expect_near(const Trained& a, const Trained& b) {
  EXPECT_NEAR(a.losses[0], b.losses[0], 2e-6 * std::max(1.0, std::abs(b.losses[0])));
  EXPECT_EQ(a.tokens, b.tokens);
  ASSERT_EQ(a.gradient.size(), b.gradient.size());
  EXPECT_GT(dot(b.gradient, b.gradient), 1e-6) << "this batch shows nothing";
  EXPECT_LT(distance(a.gradient, b.gradient), 1e-5);
  EXPECT_LT(distance(a.logp, b.logp), 1e-6);
  EXPECT_LT(distance(a.weights, b.weights), 1e-5);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(a.norms[i], b.norms[i], 1e-5 * b.norms[i]);
  expect_near_reports(a, b);
}

void expect_same_answers(const Trained& a, const Trained& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.report, b.report);
  EXPECT_EQ(a.logp, b.logp);
  EXPECT_EQ(a.norms, b.norms);
}

class GridParity : public testing::TestWithParam<GridCase> {};

TEST_P(GridParity, AGroupTrainsWhatOneRankTrains) {
  const auto& [model, grid] = GetParam();
  for (const Objective& objective : objectives()) {
    const TrainingRun run =
        run_of(model, objective, full_batch(5, 10, objective.unit, model.spec.vocabulary));
    const Trained one = run.on(Mesh());
    const auto ranks = run.on_ranks_of(grid);
    SCOPED_TRACE(objective.loss.spec().name);
    expect_near(ranks[0], one);
    for (const Trained& rank : ranks) expect_same_answers(rank, ranks[0]);
  }
}

TEST_P(GridParity, AReplicaWithoutASequenceDoesNotHang) {
  const auto& [model, grid] = GetParam();
  const TrainingRun run =
      run_of(model, objectives()[0], full_batch(6, 1, 1, model.spec.vocabulary));
  expect_near(run.on_ranks_of(grid)[0], run.on(Mesh()));
}

TEST_P(GridParity, WeightsAreRoundedByTheSameChancesOnEveryGrid) {
  const auto& [model, grid] = GetParam();
  const auto rounded = [&](const Mesh& mesh) {
    const auto device = engine::ops::make_cpu_device({.threads = 1});
    Trainer trainer(grid_decoder(*device, model, 3, mesh, true),
                    {.optimizer = {.weights = engine::nn::WeightType::bf16, .seed = 11}}, &mesh);
    value_or_throw(trainer.update(0));  // gradients of zero change nothing else
    auto& parameters = trainer.model().parameters();
    return std::pair{gather_model(trainer.model(), mesh),
                     engine::ops::to_host(*device, parameters.values())};
  };
  const auto ranks = on_grid(grid, rounded);
  EXPECT_EQ(ranks[0].first, rounded(Mesh()).first);
  const auto tp = static_cast<std::size_t>(grid.tp), stage = tp * static_cast<std::size_t>(grid.dp);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    EXPECT_EQ(ranks[rank].second, ranks[rank / stage * stage + rank % tp].second)
        << "replicas are alike";
}

// Weight decay alone changes the weights, element by element.
TEST_P(GridParity, WeightsIn2BytesAreRoundedByTheSameChancesOnEveryGrid) {
  const auto& [model, grid] = GetParam();
  const auto decayed = [&](const Mesh& mesh) {
    const auto device = engine::ops::make_cpu_device({.threads = 1});
    auto part = part_on(mesh, {}, 1);
    part.types = {.values = DType::bf16, .grads = DType::bf16};
    auto decoder = std::make_unique<engine::models::Decoder>(*device, model.spec, true, part);
    scatter_model(random_values(engine::nn::logical_count(decoder->whole()), 503, 0.5), *decoder);
    Trainer trainer(std::move(decoder), {.optimizer = {.weight_decay = 0.5, .seed = 11}}, &mesh);
    const auto before = gather_model(trainer.model(), mesh);
    value_or_throw(trainer.update(0.1));
    return std::pair{before, gather_model(trainer.model(), mesh)};
  };
  const auto one = decayed(Mesh());
  EXPECT_NE(one.second, one.first);
  EXPECT_EQ(on_grid(grid, decayed)[0], one);
}

TEST_P(GridParity, AGradientThatIsNotFiniteIsRefusedOnAllRanksAlikeByName) {
  const auto& [model, grid] = GetParam();
  const auto last = [&](const Mesh& mesh) { return mesh.world().rank() == grid.ranks() - 1; };
  const auto answers = on_grid(grid, [&](const Mesh& mesh) {
    const auto device = engine::ops::make_cpu_device({.threads = 1});
    Trainer trainer(grid_decoder(*device, model, 3, mesh, true), {}, &mesh);
    auto& parameters = trainer.model().parameters();
    const auto before = engine::ops::to_host(*device, parameters.values());
    if (last(mesh))
      device->fill(parameters.at("model.layers.1.mlp.down_proj.weight").grad,
                   std::numeric_limits<float>::quiet_NaN());
    const auto updated = trainer.update(1e-2);
    EXPECT_EQ(engine::ops::to_host(*device, parameters.values()), before);
    return updated ? std::string("taken") : updated.error().what;
  });
  for (const auto& answer : answers)
    EXPECT_THAT(answer, HasSubstr("gradient of model.layers.1.mlp.down_proj.weight is not finite"));
}

TEST(GridFailure, ARankThatEndsInTheMiddleEndsTheStepOfAll) {
  const GridModel model = grid_models()[0];
  const Experience batch = full_batch(5, 10, 1, model.spec.vocabulary);
  const auto answers = on_grid({2, 2}, [&](const Mesh& mesh) -> std::string {
    const auto device = engine::ops::make_cpu_device({.threads = 1});
    Trainer trainer(grid_decoder(*device, model, 3, mesh, true), {}, &mesh);
    if (mesh.world().rank() == 3) {
      mesh.world().abort("out of memory");
      return "closed: out of memory";
    }
    try {
      trainer.forward_backward(batch, algorithms::SftLoss{});
      return "it continued";
    } catch (const Failure& failure) {
      return cat(to_string(failure.error().code), ": ", failure.what());
    }
  });
  for (const auto& answer : answers)
    EXPECT_THAT(answer, testing::AllOf(HasSubstr("closed"), HasSubstr("out of memory")));
}

std::vector<GridCase> grid_cases() {
  std::vector<GridCase> all;
  for (const auto& model : grid_models())
    for (const Grid grid : {Grid{1, 2}, Grid{1, 4}, Grid{2, 1}, Grid{4, 1}, Grid{2, 2}, Grid{2, 4},
                            Grid{1, 1, 2}, Grid{2, 1, 2}, Grid{1, 2, 2}, Grid{.cp = 2},
                            Grid{.cp = 4}, Grid{.dp = 2, .tp = 2, .cp = 2}, Grid{.pp = 2, .cp = 2}})
      if (grid.tp <= model.max_tp) all.push_back({model, grid});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Grids, GridParity, testing::ValuesIn(grid_cases()),
                         [](const auto& each) { return grid_name(each.param); });

TEST(Split, WhatCannotBeSplitIsRefusedWithWhatCan) {
  const auto answer = [](const GridModel& model, int tp) {
    const auto fits = engine::models::check_split(model.spec, tp);
    return fits ? std::string("fits") : fits.error().what;
  };
  const auto uneven = grid_model("", 6, 3, 2, false, false),
             grouped = grid_model("", 8, 2, 4, false, false);
  EXPECT_THAT(answer(uneven, 4), HasSubstr("6 heads, 3 key/value heads"));
  EXPECT_THAT(answer(uneven, 4), HasSubstr("allowed: 1, 2, 3, 6"));
  EXPECT_THAT(answer(grouped, 16), HasSubstr("allowed: 1, 2, 4, 8"));
  EXPECT_THAT(answer(grouped, 0), HasSubstr("allowed: 1, 2, 4, 8"));
  for (const int tp : {1, 2, 3, 6}) EXPECT_EQ(answer(uneven, tp), "fits");
}

TEST(Split, TheRanksPartsMakeTheWholeModel) {
  for (const auto& model : grid_models())
    for (int tp = 2; tp <= model.max_tp; tp *= 2) {
      std::map<std::string, std::int64_t> counted;
      for (int rank = 0; rank < tp; ++rank)
        for (const auto& part : engine::models::parameter_list(
                 model.spec, engine::models::split_of(model.spec, rank, tp)))
          if (part.shard.first) counted[part.name] += part.shape.count();
      for (const auto& whole : engine::models::parameter_list(model.spec))
        EXPECT_EQ(counted[whole.name], whole.shape.count()) << model.title << " " << whole.name;
    }
}

TEST(Share, ReplicasGetWholeUnitsOfAboutEquallyManyTokens) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Experience batch = full_batch(seed, 40, 2, 37);
    std::vector<std::int32_t> seen, loads;
    for (const auto& share : engine::train::partition_by_tokens(batch, 4)) {
      std::int32_t tokens = 0;
      for (std::size_t i = 0; i < share.size(); ++i) {
        seen.push_back(share[i]);
        EXPECT_EQ(share[i], i % 2 == 0 ? share[i] / 2 * 2 : share[i - 1] + 1)
            << "a pair was parted";
        tokens += batch.offsets[static_cast<std::size_t>(share[i]) + 1] -
                  batch.offsets[static_cast<std::size_t>(share[i])];
      }
      loads.push_back(tokens);
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::ssize(seen), 40);
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
    EXPECT_LE(std::ranges::max(loads) - std::ranges::min(loads), 50)
        << "more than the longest pair";
  }
}

}  // namespace
}  // namespace troupe::test

// Dropout drops the same elements on any grid, in any micro-batches and with any recomputation, and
// only in training passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {
namespace {

using engine::train::Trainer;
using engine::train::TrainerOptions;

struct DroppedRun {
  GridModel model = grid_models()[1];
  engine::loss::AnyLoss loss = algorithms::SftLoss{};
  Experience batch = full_batch(5, 8, 1, 37);
  TrainerOptions options = {.optimizer = {.eps = 1e-3, .max_grad_norm = 0},
                            .attention_dropout = 0.2,
                            .hidden_dropout = 0.1};
  int ulysses = 1;
  bool divides_rows = false;

  struct Result {
    std::vector<double> losses;
    std::vector<float> weights;
  };
  Result on(const Mesh& mesh) const {
    const auto device = engine::ops::make_cpu_device({.threads = 1});
    const int degree = mesh.grid().cp > 1 ? ulysses : 1;
    Trainer trainer(grid_decoder(*device, model, 3, mesh, true, {}, degree, divides_rows), options,
                    &mesh);
    Result out;
    for (int step = 0; step < 3; ++step) {
      out.losses.push_back(trainer.forward_backward(batch, loss).loss);
      value_or_throw(trainer.update(1e-2));
    }
    out.weights = gather_model(trainer.model(), mesh);
    return out;
  }
  Result on_grid_of(Grid grid) const {
    return on_grid(grid, [&](const Mesh& mesh) { return on(mesh); })[0];
  }
};

double weights_apart(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference;
  for (std::size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b.at(i));
  return std::sqrt(dot(difference, difference) / dot(b, b));
}

TEST(Dropout, DropsTheSameElementsOnEveryGrid) {
  struct Case {
    Grid grid;
    int ulysses = 1;
    bool divides_rows = false;
  };
  for (const Case& each : {Case{{.dp = 2}}, Case{{.tp = 2}}, Case{{.tp = 2}, 1, true},
                           Case{{.cp = 2}}, Case{{.cp = 2}, 2}, Case{{.cp = 4}, 2},
                           Case{{.dp = 2, .tp = 2, .pp = 2}}, Case{{.tp = 2, .cp = 2}, 1, true}}) {
    DroppedRun run;
    run.options.micro_batch_tokens = 60;
    const auto one = run.on(Mesh());
    run.ulysses = each.ulysses;
    run.divides_rows = each.divides_rows;
    const auto found = run.on_grid_of(each.grid);
    SCOPED_TRACE(cat(to_string(each.grid), ", ulysses ", each.ulysses));
    for (std::size_t i = 0; i < one.losses.size(); ++i)
      EXPECT_NEAR(found.losses[i], one.losses[i], 4e-6 * std::max(1.0, one.losses[i]));
    EXPECT_LT(weights_apart(found.weights, one.weights), 1e-5);
  }
}

TEST(Dropout, OfEveryFamilyHasTheBitsOfOneRankInStages) {
  for (const GridModel& model : grid_models()) {
    DroppedRun run{.model = model};
    run.options.micro_batch_tokens = 60;
    const auto one = run.on(Mesh()), stages = run.on_grid_of({.pp = 2});
    EXPECT_EQ(stages.losses, one.losses) << model.title;
    EXPECT_EQ(stages.weights, one.weights) << model.title;
  }
}

TEST(Dropout, DependsNeitherOnMicroBatchesNorOnRecomputation) {
  DroppedRun run;
  const auto whole = run.on(Mesh());
  for (const int tokens : {1, 40, 100}) {
    run.options.micro_batch_tokens = tokens;
    const auto split = run.on(Mesh());
    EXPECT_EQ(split.losses, whole.losses) << tokens << " tokens";
    EXPECT_EQ(split.weights, whole.weights) << tokens << " tokens";
  }
  using engine::nn::Recomputed;
  for (const Recomputed& recomputed :
       {Recomputed{}, Recomputed{.kinds = {engine::nn::Recompute::full}},
        Recomputed{.kinds = {engine::nn::Recompute::full}, .layers = 2},
        Recomputed{.kinds = {engine::nn::Recompute::attention, engine::nn::Recompute::activation,
                             engine::nn::Recompute::norm}}}) {
    run.options.recomputed = recomputed;
    EXPECT_EQ(run.on(Mesh()).weights, whole.weights);
  }
}

TEST(Dropout, OfALossOfTheWholeBatchIsThatOfItsFirstPass) {
  DroppedRun run{.loss = algorithms::DpoLoss{}, .batch = full_batch(7, 12, 2, 37)};
  const auto whole = run.on(Mesh());
  run.options.micro_batch_tokens = 60;
  run.options.share_prefixes = true;  // without effect
  EXPECT_EQ(run.on(Mesh()).weights, whole.weights);
}

TEST(Dropout, IsNewInEveryPassAndOnlyInTrainingPasses) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const DroppedRun run;
  const auto trainer = [&](double attention, double hidden) {
    TrainerOptions options = run.options;
    options.attention_dropout = attention;
    options.hidden_dropout = hidden;
    return std::make_unique<Trainer>(grid_decoder(*device, run.model, 3, Mesh(), true), options);
  };
  const auto loss = [&](Trainer& of) { return of.forward_backward(run.batch, run.loss).loss; };
  const auto plain = trainer(0, 0), dropped = trainer(0.2, 0.1);
  const double first = loss(*dropped);
  EXPECT_NE(first, loss(*dropped)) << "the second pass of an update";
  for (const auto& [attention, hidden] : {std::pair(0.2, 0.0), std::pair(0.0, 0.1)}) {
    const auto of_one_kind = trainer(attention, hidden);
    EXPECT_NE(loss(*of_one_kind), loss(*plain));
    EXPECT_NE(loss(*of_one_kind), first);
  }
  EXPECT_EQ(dropped->logprobs(run.batch, 1), plain->logprobs(run.batch, 1));
}

}  // namespace
}  // namespace troupe::test

// What replicas exchange while passes run changes no bit.
#include <gtest/gtest.h>

#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/sft_loss.h"
#include "engine/nn/gradient_sums.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/training_run.h"

namespace troupe::test {
namespace {

using engine::train::Overlap;

GridModel with_layers(GridModel model, int layers) {
  model.spec.layers = layers;
  return model;
}

/// Buckets are shorter than a layer. Blocks of the norm of a divided optimizer are as long as a
/// tensor with tp or pp, so that there are several buckets there, too.
void expect_no_bit_changes(TrainingRun run, Grid grid) {
  run.updates = 4;
  run.scored_after = 2;
  for (const bool divided : {false, true}) {
    run.options = {.micro_batch_tokens = 40, .shard_optimizer = divided};
    run.options.bucket_values = 500;
    run.options.overlap = Overlap::none;
    const auto plain = run.on_ranks_of(grid);
    for (const Overlap overlap : {Overlap::gradients, Overlap::all}) {
      SCOPED_TRACE(cat(run.model.title, divided ? ", divided" : ""));
      run.options.overlap = overlap;
      const auto found = run.on_ranks_of(grid);
      for (std::size_t rank = 0; rank < plain.size(); ++rank) {
        EXPECT_EQ(found[rank].losses, plain[rank].losses);
        EXPECT_EQ(found[rank].norms, plain[rank].norms);
        EXPECT_TRUE(found[rank].logp == plain[rank].logp);
        EXPECT_TRUE(found[rank].weights == plain[rank].weights);
      }
    }
  }
}

TEST(Overlap, ChangesNoBitOfReplicas) {
  for (const GridModel& model : grid_models())
    expect_no_bit_changes({.model = model, .batch = full_batch(5, 10, 1, model.spec.vocabulary)},
                          {.dp = 3});
}

TEST(Overlap, ChangesNoBitWithTheOtherAxes) {
  const GridModel model = with_layers(grid_models()[0], 3);
  const Experience batch = full_batch(6, 12, 1, model.spec.vocabulary);
  for (const Grid grid : {Grid{.dp = 2, .tp = 2}, Grid{.dp = 2, .pp = 2}, Grid{.cp = 2}})
    expect_no_bit_changes({.model = model, .batch = batch}, grid);
}

TEST(Overlap, ChangesNoBitOfALossOfPairsWhereAReplicaHasNoSequence) {
  const GridModel model = with_layers(grid_models()[1], 3);
  expect_no_bit_changes({.model = model,
                         .loss = algorithms::DpoLoss{},
                         .batch = full_batch(7, 2, 2, model.spec.vocabulary)},
                        {.dp = 3});
}

TEST(Overlap, GradientsOfLaterLayersAreCompleteFirst) {
  const GridModel model = with_layers(grid_models()[0], 3);
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const auto decoder = grid_decoder(*device, model, 3, Mesh(), true);
  const auto& trained = decoder->parameters().trained();
  const auto begin_of = [&](std::string_view name) {
    std::int64_t at = 0;
    for (const auto& parameter : trained.all()) {
      if (parameter.name.starts_with(name)) return at;
      at += parameter.value.count();
    }
    return at;
  };
  std::vector<std::string> complete{"model.norm.", "lm_head.", "score.", "model.layers.2."};
  EXPECT_EQ(engine::nn::complete_from(trained, complete), begin_of("model.layers.2."));
  complete.push_back("model.layers.1.");
  EXPECT_EQ(engine::nn::complete_from(trained, complete), begin_of("model.layers.1."));
  EXPECT_LT(begin_of("model.layers.2."), trained.count());
}

}  // namespace
}  // namespace troupe::test

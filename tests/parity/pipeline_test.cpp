// Pipeline stages train the bits of a single rank: the passes of each micro-batch and the sums over
// micro-batches have its order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/sft_loss.h"
#include "algorithms/losses/value_loss.h"
#include "engine/models/stages.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/run_stages.h"
#include "engine/train/trainer.h"
#include "tests/support/training_run.h"

namespace troupe::test {
namespace {

using engine::train::Trainer;
using engine::train::TrainerOptions;
using testing::HasSubstr;

// Without clipping: the norm is a sum over stages, whose last bits differ.
void expect_the_bits_of_one_rank(TrainingRun run, int pp) {
  run.options.optimizer.max_grad_norm = 0;
  const Trained one = run.on(Mesh());
  const auto stages = run.on_ranks_of({1, 1, pp});
  EXPECT_EQ(stages[0].weights, one.weights);
  EXPECT_EQ(stages[0].exp_avg, one.exp_avg);
  for (const Trained& stage : stages) {
    EXPECT_EQ(stage.losses, one.losses);
    EXPECT_EQ(stage.logp, one.logp);
    EXPECT_EQ(stage.norms, stages[0].norms);
  }
  for (std::size_t i = 0; i < one.norms.size(); ++i)
    EXPECT_NEAR(stages[0].norms[i], one.norms[i], 1e-6 * one.norms[i]);
}

TEST(Pipeline, HasTheBitsOfOneRankForAllFamilies) {
  for (const auto& model : staged_models())
    for (const int pp : {2, 4}) {
      SCOPED_TRACE(cat(model.title, ", pp ", pp));
      const Experience batch = full_batch(5, 10, 1, model.spec.vocabulary);
      expect_the_bits_of_one_rank(
          {.model = deep(model), .batch = batch, .options = {.micro_batch_tokens = 30}}, pp);
    }
}

TEST(Pipeline, HasTheBitsOfOneRankForUnevenLayers) {
  const GridModel model = deep(grid_models()[0]);
  const Experience batch = full_batch(6, 12, 1, model.spec.vocabulary);
  using Layers = std::vector<std::int64_t>;
  for (const Layers& layers : {Layers{1, 4}, Layers{4, 1}, Layers{1, 3, 1}, Layers{1, 1, 1, 1, 1}})
    expect_the_bits_of_one_rank(
        {.model = model, .batch = batch, .options = {.micro_batch_tokens = 30}, .layers = layers},
        static_cast<int>(layers.size()));
}

TEST(Pipeline, HasTheBitsOfOneRankWithNoopLayers) {
  const GridModel model = deep(grid_models()[0]);
  const Experience batch = full_batch(6, 12, 1, model.spec.vocabulary);
  for (const auto& noop : {std::vector<std::int64_t>{0}, {0, 6}, {2, 3, 7}})
    expect_the_bits_of_one_rank(
        {.model = model, .batch = batch, .options = {.micro_batch_tokens = 30}, .noop = noop}, 2);
}

// Numbers of micro-batches that are and that are not multiples of the stages.
TEST(Chunks, HaveTheBitsOfOneRankForAllFamilies) {
  for (const auto& model : staged_models())
    for (const std::int32_t tokens : {30, 75}) {
      SCOPED_TRACE(cat(model.title, ", micro-batches of ", tokens, " tokens"));
      const Experience batch = full_batch(5, 10, 1, model.spec.vocabulary);
      expect_the_bits_of_one_rank({.model = deep(model),
                                   .batch = batch,
                                   .options = {.micro_batch_tokens = tokens},
                                   .chunks = 2},
                                  2);
    }
}

TEST(Chunks, HaveTheBitsOfOneRankForUnevenAndNoopLayers) {
  const GridModel model = deep(grid_models()[0], 9);
  const Experience batch = full_batch(6, 12, 1, model.spec.vocabulary);
  const auto expect = [&](int pp, int chunks, std::vector<std::int64_t> layers,
                          std::vector<std::int64_t> noop) {
    SCOPED_TRACE(cat(pp, " stages of ", chunks, " chunks"));
    expect_the_bits_of_one_rank({.model = model,
                                 .batch = batch,
                                 .options = {.micro_batch_tokens = 30},
                                 .layers = std::move(layers),
                                 .chunks = chunks,
                                 .noop = std::move(noop)},
                                pp);
  };
  expect(2, 3, {3, 1, 1, 2, 1, 1}, {});
  expect(2, 4, {}, {0, 5});
  expect(2, 3, {2, 1, 1, 4, 3, 1}, {0, 1, 11});  // chunks without a layer
  expect(3, 2, {}, {});
  expect(4, 2, {}, {});
}

TEST(Chunks, HaveTheBitsOfOneRankForALossOfPairsAndForScores) {
  const GridModel model = deep(grid_models()[0], 4);
  Experience batch = full_batch(7, 12, 2, model.spec.vocabulary);
  expect_the_bits_of_one_rank({.model = model,
                               .loss = algorithms::DpoLoss{},
                               .batch = batch,
                               .options = {.micro_batch_tokens = 60, .share_prefixes = true},
                               .chunks = 2},
                              2);
  batch.value = batch.returns = batch.advantage;
  expect_the_bits_of_one_rank({.model = scored(model, 1, true),
                               .loss = algorithms::ValueLoss{},
                               .batch = batch,
                               .options = {.micro_batch_tokens = 60},
                               .chunks = 2},
                              2);
}

TEST(Chunks, RecomputationAndOneMicroBatchChangeNoBit) {
  const GridModel model = deep(grid_models()[1], 6);
  const Experience batch = full_batch(8, 9, 1, model.spec.vocabulary);
  expect_the_bits_of_one_rank({.model = model,
                               .batch = batch,
                               .options = {.micro_batch_tokens = 40,
                                           .recomputed = {.kinds = {engine::nn::Recompute::full}}},
                               .chunks = 2},
                              3);
  expect_the_bits_of_one_rank({.model = model, .batch = batch, .chunks = 3}, 2);
}

// tp and dp change sums, so the bits are those of the same grid with one chunk in each stage.
TEST(Chunks, ChangeNoBitBesideTheOtherAxes) {
  const GridModel model = deep(grid_models()[0], 4);
  TrainingRun run{.model = model,
                  .batch = full_batch(9, 14, 1, model.spec.vocabulary),
                  .options = {.micro_batch_tokens = 40}};
  run.options.bucket_values = 500;
  for (const Grid grid : {Grid{.tp = 2, .pp = 2}, Grid{.dp = 2, .pp = 2}, Grid{.pp = 2, .cp = 2}})
    for (const bool divided : {false, true})
      for (const auto overlap : {engine::train::Overlap::none, engine::train::Overlap::all}) {
        SCOPED_TRACE(cat(to_string(grid), divided ? ", zero 1" : "",
                         overlap == engine::train::Overlap::all ? ", overlap all" : ""));
        run.options.shard_optimizer = divided;
        run.options.overlap = overlap;
        const auto trained = [&](int chunks) {
          run.chunks = chunks;
          // The norm is a sum over stages, which have other tensors.
          run.options.optimizer.max_grad_norm = 0;
          return on_grid(grid, [&](const Mesh& mesh) { return run.on(mesh); });
        };
        const auto found = trained(2), plain = trained(1);
        EXPECT_EQ(found[0].weights, plain[0].weights);
        EXPECT_EQ(found[0].exp_avg, plain[0].exp_avg);
        for (std::size_t rank = 0; rank < plain.size(); ++rank) {
          EXPECT_EQ(found[rank].losses, plain[rank].losses);
          EXPECT_EQ(found[rank].logp, plain[rank].logp);
        }
      }
}

TEST(Pipeline, TheOrderOfTheRanksChangesNoBit) {
  const GridModel model = deep(grid_models()[0]);
  TrainingRun run{.model = model,
                  .batch = full_batch(6, 12, 1, model.spec.vocabulary),
                  .options = {.micro_batch_tokens = 30}};
  const auto trained = [&](engine::parallel::AxisOrder order) {
    return on_grid({.dp = 2, .pp = 2, .order = order},
                   [&](const Mesh& mesh) { return run.on(mesh); })[0];
  };
  const Trained stages_last = trained(engine::parallel::AxisOrder::tp_cp_dp_pp);
  const Trained stages_first = trained(engine::parallel::AxisOrder::tp_cp_pp_dp);
  EXPECT_EQ(stages_first.weights, stages_last.weights);
  EXPECT_EQ(stages_first.losses, stages_last.losses);
  EXPECT_EQ(stages_first.norms, stages_last.norms);
}

TEST(Pipeline, HasTheBitsOfOneRankForALossOfPairsAndForScores) {
  const GridModel model = deep(grid_models()[0], 3);
  Experience batch = full_batch(7, 12, 2, model.spec.vocabulary);
  expect_the_bits_of_one_rank({.model = model,
                               .loss = algorithms::DpoLoss{},
                               .batch = batch,
                               .options = {.micro_batch_tokens = 60, .share_prefixes = true}},
                              2);
  batch.value = batch.returns = batch.advantage;
  expect_the_bits_of_one_rank({.model = scored(model, 1, true),
                               .loss = algorithms::ValueLoss{},
                               .batch = batch,
                               .options = {.micro_batch_tokens = 60}},
                              3);
}

TEST(Pipeline, RecomputationAndOneMicroBatchChangeNoBit) {
  const GridModel model = deep(grid_models()[1], 3);
  const Experience batch = full_batch(8, 9, 1, model.spec.vocabulary);
  expect_the_bits_of_one_rank({.model = model,
                               .batch = batch,
                               .options = {.micro_batch_tokens = 40,
                                           .recomputed = {.kinds = {engine::nn::Recompute::full}}}},
                              3);
  expect_the_bits_of_one_rank({.model = model, .batch = batch, .options = {}}, 2);
}

TEST(Pipeline, NoSettingOfRecomputationChangesABitOfAGrid) {
  const GridModel model = deep(grid_models()[0]);
  const Experience batch = full_batch(8, 9, 1, model.spec.vocabulary);
  TrainingRun run{.model = model, .batch = batch, .options = {.micro_batch_tokens = 40}};
  using engine::nn::Recompute, engine::nn::Recomputed;
  using engine::nn::RecomputeMethod;
  for (const Grid grid : {Grid{.tp = 2}, Grid{.pp = 2}, Grid{.tp = 2, .pp = 2}, Grid{.cp = 2}}) {
    SCOPED_TRACE(cat("tp ", grid.tp, ", pp ", grid.pp, ", cp ", grid.cp));
    const auto trained = [&](const Recomputed& recomputed, const std::string& offload = "") {
      run.options.recomputed = recomputed;
      run.options.offload = offload;
      return on_grid(grid, [&](const Mesh& mesh) { return run.on(mesh); })[0];
    };
    const Trained kept = trained({});
    EXPECT_EQ(trained({}, testing::TempDir()).weights, kept.weights) << "in files";
    for (const bool in_advance : {false, true})
      for (const auto method : {RecomputeMethod::uniform, RecomputeMethod::block})
        for (const std::int64_t count : {1, 2, 9}) {
          std::vector<Recompute> kinds{Recompute::full};
          if (count == 2) kinds.push_back(Recompute::norm);
          const Trained again =
              trained({.kinds = kinds, .method = method, .layers = count, .in_advance = in_advance},
                      count == 2 ? testing::TempDir() : std::string());
          EXPECT_EQ(again.weights, kept.weights) << count << " layers, " << in_advance;
          EXPECT_EQ(again.losses, kept.losses) << count << " layers, " << in_advance;
        }
  }
}

TEST(Pipeline, AStageWorksBeforeTheNextOneSendsGradients) {
  std::promise<void> worked;
  on_grid({.pp = 2}, [&](const Mesh& mesh) {
    const auto device = engine::ops::make_reference_device();
    const std::vector<std::int64_t> rows{3};
    const auto same = [](std::size_t, std::size_t, const Tensor& x) { return x; };
    engine::train::StagePasses passes{
        rows, 2, 1, same, same, [&](std::size_t, std::size_t) { worked.set_value(); }};
    if (mesh.pp().rank() == 0)
      passes.forward = [&](std::size_t, std::size_t, const Tensor&) {
        return device->empty({3, 2});
      };
    else
      passes.backward = [&](std::size_t, std::size_t, const Tensor&) {
        EXPECT_EQ(worked.get_future().wait_for(std::chrono::seconds(60)),
                  std::future_status::ready);
        return device->empty({3, 2});
      };
    const auto stages = engine::collectives::make_tensor_group(*device, mesh.pp());
    engine::train::run_stages(*device, {*stages, *stages}, passes);
    return 0;
  });
}

TEST(Pipeline, ADividedOptimizerHasTheBitsOfAnUndividedOne) {
  const GridModel model = deep(grid_models()[0], 3);
  TrainingRun run{.model = model,
                  .batch = full_batch(9, 12, 1, model.spec.vocabulary),
                  .options = {.micro_batch_tokens = 40}};
  const auto weights = [&](bool zero) {
    run.options.shard_optimizer = zero;
    return on_grid({2, 1, 2}, [&](const Mesh& mesh) {
      const auto device = engine::ops::make_cpu_device({.threads = 1});
      Trainer trainer(grid_decoder(*device, model, 3, mesh, true), run.options, &mesh);
      for (int step = 0; step < 3; ++step) {
        trainer.forward_backward(run.batch, run.loss);
        value_or_throw(trainer.update(1e-2));
      }
      return gather_model(trainer.model(), mesh);
    })[0];
  };
  EXPECT_EQ(weights(true), weights(false));
}

TEST(Stages, AreEvenWithLongerOnesFirstOrAsGiven) {
  const auto spec = deep(grid_models()[0]).spec;
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(value_or_throw(engine::models::stage_layers(spec, 2, {})), (Layers{3, 2}));
  EXPECT_EQ(value_or_throw(engine::models::stage_layers(spec, 4, {})), (Layers{2, 1, 1, 1}));
  EXPECT_EQ(value_or_throw(engine::models::stage_layers(spec, 2, {1, 4})), (Layers{1, 4}));
  const auto refused = [&](int stages, const Layers& layers) {
    const auto found = engine::models::stage_layers(spec, stages, layers);
    return found ? std::string("taken") : found.error().what;
  };
  EXPECT_THAT(refused(6, {}), HasSubstr("allowed: 1 to 5"));
  EXPECT_THAT(refused(2, {5}), HasSubstr("expected 2 numbers"));
  EXPECT_THAT(refused(2, {5, 0}), HasSubstr("found 0"));
  EXPECT_THAT(refused(2, {2, 2}), HasSubstr("expected 5 layers in all, as the model has, found 4"));
}

TEST(Stages, NoopLayersShortenTheStagesThatHaveThem) {
  const auto spec = deep(grid_models()[0]).spec;
  using Layers = std::vector<std::int64_t>;
  const auto found = [&](int stages, const Layers& layers, const Layers& noop) {
    return engine::models::stage_layers(spec, stages, layers, noop);
  };
  EXPECT_EQ(value_or_throw(found(2, {}, {0})), (Layers{2, 3}));
  EXPECT_EQ(value_or_throw(found(2, {}, {5})), (Layers{3, 2}));
  EXPECT_EQ(value_or_throw(found(2, {5, 2}, {6, 0})), (Layers{4, 1}));
  const auto refused = [&](int stages, const Layers& layers, const Layers& noop) {
    const auto got = found(stages, layers, noop);
    return got ? std::string("taken") : got.error().what;
  };
  EXPECT_THAT(refused(2, {}, {6}), HasSubstr("expected 0 to 5 (5 layers of the model and 1 of"));
  EXPECT_THAT(refused(2, {}, {-1}), HasSubstr("found -1"));
  EXPECT_THAT(refused(2, {}, {1, 1}), HasSubstr("found 1 twice"));
  EXPECT_THAT(refused(2, {3, 2}, {1}), HasSubstr("5 of the model and 1 of parallel.noop_layers"));
  EXPECT_THAT(refused(3, {}, {0, 1, 2, 3}), HasSubstr("layers 0 to 2 are a stage"));
}

TEST(Stages, HaveOneChunkAfterTheOtherInTheOrderOfTheModel) {
  const auto spec = deep(grid_models()[0]).spec;
  using Layers = std::vector<std::int64_t>;
  const auto found = [&](int stages, int chunks, const Layers& layers, const Layers& noop) {
    return engine::models::stage_layers(spec, stages, layers, noop, chunks);
  };
  EXPECT_EQ(value_or_throw(found(2, 2, {}, {})), (Layers{2, 1, 1, 1}));
  EXPECT_EQ(value_or_throw(found(2, 2, {1, 1, 1, 2}, {})), (Layers{1, 1, 1, 2}));
  EXPECT_EQ(value_or_throw(found(2, 3, {}, {0})), (Layers{0, 1, 1, 1, 1, 1}));
  const auto stage = engine::models::stage_of(1, {2, 1, 1, 1}, 2);
  EXPECT_EQ(stage.layers(), (Layers{2, 4}));
  EXPECT_EQ(stage.count, 2);
  EXPECT_EQ(stage.places(1).begin, 1);
  const auto refused = [&](int stages, int chunks, const Layers& layers, const Layers& noop) {
    const auto got = found(stages, chunks, layers, noop);
    return got ? std::string("taken") : got.error().what;
  };
  EXPECT_THAT(refused(2, 3, {}, {}), HasSubstr("allowed: 1 to 2"));
  EXPECT_THAT(refused(1, 2, {}, {}), HasSubstr("allowed: 1 to 1"));
  EXPECT_THAT(refused(2, 2, {3, 2}, {}), HasSubstr("expected 4 numbers"));
  EXPECT_THAT(refused(2, 2, {2, 1, 1, 2}, {}), HasSubstr("expected 5 layers in all"));
  EXPECT_THAT(refused(2, 2, {1, 3, 1, 2}, {0, 4}), HasSubstr("layers 0 to 0 and 4 to 4 are a"));
}

TEST(Stages, HaveEveryTensorOnceAndATiedTableOnTheFirstAndTheLast) {
  for (const auto& each : staged_models())
    for (const int chunks : {1, 2}) {
      const auto spec = deep(each, 6).spec;
      const auto split = engine::models::split_of(spec, 0, 1);
      const auto layers = value_or_throw(engine::models::stage_layers(spec, 3, {}, {}, chunks));
      std::vector<std::string> counted, copies, all;
      for (int i = 0; i < 3; ++i)
        for (const auto& tensor : engine::models::parameter_list(
                 spec, split, engine::models::stage_of(i, layers, chunks)))
          (tensor.shard.first ? counted : copies).push_back(tensor.name);
      for (const auto& tensor : engine::models::parameter_list(spec)) all.push_back(tensor.name);
      // Chunks of a stage are not next to each other in the model.
      if (chunks == 1) {
        EXPECT_EQ(counted, all) << each.title;
      }
      EXPECT_THAT(counted, testing::UnorderedElementsAreArray(all)) << each.title;
      EXPECT_EQ(copies.size(), spec.tied ? 1u : 0u) << each.title;
    }
}

}  // namespace
}  // namespace troupe::test

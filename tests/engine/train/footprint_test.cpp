// Estimated and measured memory of training.
#include "engine/train/footprint.h"

#include <gtest/gtest.h>

#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/memory/block_pool.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"
#include "tests/support/llama_spec.h"
#include "tests/support/random_decoder.h"

namespace troupe::engine::train {
namespace {

using nn::Recomputed;

models::DecoderSpec tied_model(const test::LlamaSizes& sizes) {
  models::DecoderSpec spec = test::llama_spec(sizes, 128);
  spec.tied = true;
  return spec;
}

models::DecoderSpec small_model() {
  return tied_model({.vocabulary = 500,
                     .width = 96,
                     .layers = 6,
                     .inner = 256,
                     .heads = 6,
                     .kv_heads = 3,
                     .head_size = 16});
}

data::Experience uniform_batch(int sequences, int length) {
  data::Experience batch;
  for (int n = 0; n < sequences; ++n) {
    std::vector<std::int32_t> ids;
    for (int t = 0; t < length; ++t) ids.push_back((7 * n + 13 * t) % 500);
    std::vector<float> mask(ids.size(), 1.0f);
    mask[0] = 0;
    batch.append(ids, mask);
    batch.count += length - 1;
  }
  return batch;
}

using algorithms::SftLoss;

/// Peak memory of a run of two steps with two micro-batches each, minus the device's memory before
/// it. With a mesh, of this rank.
double measured(const models::DecoderSpec& spec, const Recomputed& recomputed, std::int32_t tokens,
                const parallel::Mesh* mesh = nullptr, const SftLoss& loss = {}) {
  const auto device = ops::make_cpu_device({.threads = 1});
  const auto before = device->memory().now;
  auto model = std::make_unique<models::Decoder>(*device, spec, true, mesh ? &mesh->tp() : nullptr);
  test::randomize(model->parameters(), 4, 0.1);
  Trainer trainer(std::move(model), {.micro_batch_tokens = tokens, .recomputed = recomputed}, mesh);
  for (int step = 0; step < 2; ++step) {
    trainer.forward_backward(uniform_batch(2 * tokens / 64, 64), loss);
    value_or_throw(trainer.update(1e-3));
  }
  EXPECT_LE(device->memory().held, device->memory().peak + ops::BlockPool::slack);
  return static_cast<double>(device->memory().peak - before);
}

models::Split whole(const models::DecoderSpec& spec) {
  return models::split_of(spec, 0, 1);
}

TEST(Footprint, IsWithinAFifthOfWhatARunUses) {
  for (const Recomputed& recomputed :
       {Recomputed{}, Recomputed{.kinds = {nn::Recompute::full}},
        Recomputed{.kinds = {nn::Recompute::attention}},
        Recomputed{.kinds = {nn::Recompute::activation}},
        Recomputed{.kinds = {nn::Recompute::norm}},
        Recomputed{
            .kinds = {nn::Recompute::attention, nn::Recompute::activation, nn::Recompute::norm}}})
    for (const std::int32_t tokens : {256, 1024}) {
      const double used = measured(small_model(), recomputed, tokens);
      const auto estimate = static_cast<double>(
          footprint(small_model(), recomputed, tokens, whole(small_model()), true).peak());
      EXPECT_GT(estimate / used, 0.8) << tokens << " tokens";
      EXPECT_LT(estimate / used, 1.25) << tokens << " tokens";
    }
}

TEST(Footprint, CountsLogitsThatALossKeeps) {
  const models::DecoderSpec spec = tied_model({.vocabulary = 40000,
                                               .width = 32,
                                               .layers = 1,
                                               .inner = 64,
                                               .heads = 2,
                                               .kv_heads = 1,
                                               .head_size = 16});
  for (const std::int32_t tokens : {512, 2560}) {  // of the second the head keeps four fifths
    const double used = measured(spec, {}, tokens, nullptr, {.kind = algorithms::SftLossKind::dft});
    const auto estimate =
        static_cast<double>(footprint(spec, {}, tokens, whole(spec), false).peak());
    EXPECT_GT(estimate / used, 0.8) << tokens << " tokens";
    EXPECT_LT(estimate / used, 1.25) << tokens << " tokens";
  }
}

TEST(Footprint, OfEachRankIsWithinAFifthOfWhatItUses) {
  const models::DecoderSpec spec =
      small_model();  // three key/value heads: one rank has two of them
  for (const Recomputed& recomputed : {Recomputed{}, Recomputed{.kinds = {nn::Recompute::full}}}) {
    const auto used = test::on_grid({.dp = 1, .tp = 2}, [&](const parallel::Mesh& mesh) {
      return measured(spec, recomputed, 1024, &mesh);
    });
    for (int index = 0; index < 2; ++index) {
      const auto estimate = static_cast<double>(
          footprint(spec, recomputed, 1024, models::split_of(spec, index, 2), true).peak());
      EXPECT_GT(estimate / used[static_cast<std::size_t>(index)], 0.8) << "rank " << index;
      EXPECT_LT(estimate / used[static_cast<std::size_t>(index)], 1.25) << "rank " << index;
    }
  }
}

TEST(Footprint, CountsTheSecondGradientOfATiedEmbedding) {
  models::DecoderSpec spec = small_model();
  const std::uint64_t table = 4 * 500 * 96;
  const auto of = [&] { return footprint(spec, {}, 256, whole(spec), true); };
  EXPECT_EQ(of().gradients, of().weights + table);
  spec.tied = false;
  EXPECT_EQ(of().gradients, of().weights);
  spec.tied = true;
  spec.labels = 1;
  EXPECT_EQ(of().gradients, of().weights) << "a score head is not the embedding";
}

TEST(Footprint, EachChoiceUsesLessThanKeepingAll) {
  const double all = measured(small_model(), {}, 1024),
               layers = measured(small_model(), {.kinds = {nn::Recompute::full}}, 1024);
  const double some = measured(
      small_model(),
      {.kinds = {nn::Recompute::attention, nn::Recompute::activation, nn::Recompute::norm}}, 1024);
  EXPECT_LT(layers, some);
  EXPECT_LT(some, all);
}

TEST(Footprint, OfALayerOfAHundredMillionParameters) {
  // Width 768, 12 heads, inner 2048: bytes a token and layer.
  models::DecoderSpec one = small_model();
  one.width = 768;
  one.inner = 2048;
  one.heads = one.kv_heads = 12;
  one.head_size = 64;
  one.layers = 1;
  models::DecoderSpec two = one;
  two.layers = 2;
  const auto of = [&](const Recomputed& recomputed) {
    return 4 *
           (kept_floats(two, recomputed, whole(two)) - kept_floats(one, recomputed, whole(one)));
  };
  EXPECT_EQ(of({}), 4 * (8 * 768 + 3 * 2048 + 14));
  EXPECT_EQ(of({.kinds = {nn::Recompute::attention}}), 4 * (7 * 768 + 3 * 2048 + 2));
  EXPECT_EQ(of({.kinds = {nn::Recompute::activation}}), 4 * (8 * 768 + 2 * 2048 + 14));
  EXPECT_EQ(of({.kinds = {nn::Recompute::norm}}), 4 * (6 * 768 + 3 * 2048 + 14));
  EXPECT_EQ(of({.kinds = {nn::Recompute::full}}), 4 * 768);
}

}  // namespace
}  // namespace troupe::engine::train

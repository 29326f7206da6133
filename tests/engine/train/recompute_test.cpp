// Recomputation changes no bit of a gradient, for every family, precision and device.
#include <gtest/gtest.h>

#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/footprint.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::engine::train {
namespace {

using nn::Recomputed;
using nn::RecomputeMethod;

const std::vector<Recomputed> choices{
    {.kinds = {nn::Recompute::full}},
    {.kinds = {nn::Recompute::full}, .layers = 2},
    {.kinds = {nn::Recompute::full, nn::Recompute::norm}, .layers = 7},
    {.kinds = {nn::Recompute::full}, .method = RecomputeMethod::block},
    {.kinds = {nn::Recompute::full, nn::Recompute::activation},
     .method = RecomputeMethod::block,
     .layers = 2},
    {.kinds = {nn::Recompute::full}, .method = RecomputeMethod::block, .layers = 7},
    {.kinds = {nn::Recompute::attention}},
    {.kinds = {nn::Recompute::activation}},
    {.kinds = {nn::Recompute::norm}},
    {.kinds = {nn::Recompute::attention, nn::Recompute::activation, nn::Recompute::norm}},
    {.kinds = {nn::Recompute::full, nn::Recompute::attention, nn::Recompute::activation,
               nn::Recompute::norm}}};

class Recompute : public testing::TestWithParam<test::GridModel> {
 protected:
  const models::DecoderSpec spec_ = with_layers(GetParam().spec, 3);
  const data::Experience batch_ = test::full_batch(5, 7, 1, spec_.vocabulary);

  static models::DecoderSpec with_layers(models::DecoderSpec spec, std::int64_t layers) {
    spec.layers = layers;
    if (!spec.layer.empty()) spec.layer.resize(static_cast<std::size_t>(layers), spec.layer.back());
    return spec;
  }

  std::vector<float> gradient(ops::Device& device, ops::Precision precision,
                              const Recomputed& recomputed, const std::string& offload = "") const {
    auto model = std::make_unique<models::Decoder>(device, spec_, true);
    test::randomize(model->parameters(), 4, 0.5);
    Trainer trainer(std::move(model), {.dtype = precision,
                                       .micro_batch_tokens = 40,
                                       .recomputed = recomputed,
                                       .offload = offload});
    trainer.forward_backward(batch_, algorithms::SftLoss{});
    return ops::to_host(device, trainer.model().parameters().grads());
  }
};

INSTANTIATE_TEST_SUITE_P(Families, Recompute, testing::ValuesIn(test::grid_models()),
                         [](const auto& each) { return each.param.title; });
INSTANTIATE_TEST_SUITE_P(Mixtures, Recompute, testing::Values(test::mixture_model()),
                         [](const auto& each) { return each.param.title; });

TEST_P(Recompute, GivesTheBitsOfWhatIsKept) {
  const auto reference = ops::make_reference_device(), cpu = ops::make_cpu_device({.threads = 2});
  for (ops::Device* device : {reference.get(), cpu.get()})
    for (const auto precision : {ops::Precision::f32, ops::Precision::bf16}) {
      const auto kept = gradient(*device, precision, {});
      for (std::size_t i = 0; i < choices.size(); ++i)
        EXPECT_EQ(gradient(*device, precision, choices[i]), kept) << "choice " << i;
    }
}

TEST_P(Recompute, GivesTheSameBitsFromFiles) {
  const auto cpu = ops::make_cpu_device({.threads = 1});
  const auto kept = gradient(*cpu, ops::Precision::f32, {});
  EXPECT_EQ(gradient(*cpu, ops::Precision::f32, {}, testing::TempDir()), kept);
  for (const Recomputed& choice : choices)
    EXPECT_EQ(gradient(*cpu, ops::Precision::f32, choice, testing::TempDir()), kept);
}

TEST_P(Recompute, KeepsWhatTheFootprintSays) {
  const auto device = ops::make_cpu_device({.threads = 1});
  models::Decoder model(*device, spec_, true);
  test::randomize(model.parameters(), 4, 0.5);
  const ops::PreparedLayout layout = device->prepare(layout_of(batch_));
  auto all = choices;
  all.push_back({});
  for (const Recomputed& recomputed : all) {
    const nn::ForwardContext pass{.device = *device, .layout = layout, .recomputed = recomputed};
    nn::Saved saved;
    model.forward(batch_.tokens, pass, saved);
    const std::int64_t kept = kept_floats(spec_, recomputed, models::split_of(spec_, 0, 1));
    const std::size_t stated = 4 * batch_.tokens.size() * static_cast<std::size_t>(kept);
    // The bounds of the experts' rows, for each layer that keeps its routes, are not per token.
    const auto bounds = spec_.experts ? 4 * (spec_.experts->router.experts + 1) : 1;
    const std::size_t more = saved.bytes() - stated;
    EXPECT_EQ(more % static_cast<std::size_t>(bounds), 0U);
    EXPECT_LE(more, static_cast<std::size_t>(spec_.expert_layers() * bounds));
  }
}

}  // namespace
}  // namespace troupe::engine::train

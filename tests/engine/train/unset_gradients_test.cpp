// A gradient that is marked unset after an update and assigned by the next GEMM equals one that was
// cleared.
#include <gtest/gtest.h>

#include <algorithm>

#include "algorithms/losses/sft_loss.h"
#include "engine/nn/embedding.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::engine::train {
namespace {

class UnsetGradients : public testing::TestWithParam<test::GridModel> {
 protected:
  const data::Experience batch_ = test::full_batch(5, 7, 1, GetParam().spec.vocabulary);

  static std::int64_t unset(const nn::Parameters& parameters) {
    return std::ranges::count_if(parameters.all(),
                                 [](const nn::Parameter& p) { return p.state && p.state->unset; });
  }

  // Weights after updates from several micro-batches each; the third update has no gradient.
  std::vector<float> weights(ops::Device& device, ops::Precision precision, bool cleared) const {
    auto model = std::make_unique<models::Decoder>(device, GetParam().spec, true);
    test::randomize(model->parameters(), 4, 0.5);
    Trainer trainer(std::move(model), {.dtype = precision, .micro_batch_tokens = 12});
    auto& parameters = trainer.model().parameters();
    for (int update = 1; update <= 4; ++update) {
      if (update != 3) trainer.forward_backward(batch_, algorithms::SftLoss{});
      EXPECT_TRUE(trainer.update(0.01));
      EXPECT_GT(unset(parameters), 0);
      if (!cleared) continue;
      const auto gradients = ops::to_host(device, parameters.grads());
      EXPECT_TRUE(std::ranges::all_of(gradients, [](float g) { return g == 0; }));
      EXPECT_EQ(unset(parameters), 0);
    }
    return ops::to_host(device, parameters.values());
  }
};

INSTANTIATE_TEST_SUITE_P(Families, UnsetGradients, testing::ValuesIn(test::grid_models()),
                         [](const auto& each) { return each.param.title; });
INSTANTIATE_TEST_SUITE_P(Mixtures, UnsetGradients, testing::Values(test::mixture_model()),
                         [](const auto& each) { return each.param.title; });

TEST_P(UnsetGradients, GiveTheBitsOfClearedOnes) {
  const auto reference = ops::make_reference_device(), cpu = ops::make_cpu_device({.threads = 2});
  for (ops::Device* device : {reference.get(), cpu.get()})
    for (const auto precision : {ops::Precision::f32, ops::Precision::bf16})
      EXPECT_EQ(weights(*device, precision, false), weights(*device, precision, true));
}

// A head that shares the table need not come first.
TEST(UnsetGradient, OfATableIsClearedBeforeRowsAreAdded) {
  const auto device = ops::make_reference_device();
  nn::Parameters parameters(*device, {{.name = "table", .shape = {3, 2}}}, true);
  nn::Parameter& table = parameters.at("table");
  const ops::PreparedLayout layout;
  nn::Saved saved;
  const nn::Embedding embedding{.table = &table};
  device->fill(table.grad, 9);
  table.state->unset = true;
  for (const float once : {1.0F, 2.0F}) {  // the second time it adds
    const Tensor dx = ops::from_host(*device, {1, 2}, std::vector<float>{4, 5});
    embedding.backward(std::vector<std::int32_t>{1}, dx, {*device, layout, ops::Precision::f32},
                       saved);
    EXPECT_EQ(ops::to_host(*device, table.grad),
              (std::vector<float>{0, 0, once * 4, once * 5, 0, 0}));
  }
}

}  // namespace
}  // namespace troupe::engine::train

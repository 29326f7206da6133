// Adapters of a Linear: their gradients, their cost, and the parameters that they do not change.
#include "engine/base/text/text.h"
#include "engine/nn/attention.h"
#include "engine/nn/gradients.h"
#include "engine/nn/mlp.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/optim/adamw.h"
#include "tests/engine/nn/linear_module.h"
#include "tests/support/gradcheck.h"

namespace troupe::engine::nn {
namespace {

using test::random_tensor;

constexpr bool trained = true;

// Frozen matrices w0, w1, ... of the given shapes, each with an adapter of rank 3.
Parameters adapted(ops::Device& device, const std::vector<Shape>& shapes, bool magnitudes) {
  std::vector<ParameterSpec> wanted;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    wanted.push_back({cat("w", i), shapes[i], {}, false});
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    wanted.push_back({cat("a", i), {3, shapes[i][1]}, {}, true, true});
    wanted.push_back({cat("b", i), {shapes[i][0], 3}, {}, true, true});
    if (magnitudes) wanted.push_back({cat("m", i), {shapes[i][0]}, {}, true, true});
  }
  Parameters parameters(device, wanted, true);
  test::randomize(parameters, 2, 0.5);
  return parameters;
}

Linear linear(Parameters& parameters, int index, double dropout = 0) {
  const auto i = static_cast<std::uint32_t>(index);
  Parameter* magnitude = parameters.find(cat("m", i));
  return {&parameters.at(cat("w", i)),
          nullptr,
          nullptr,
          {&parameters.at(cat("a", i)), &parameters.at(cat("b", i)), magnitude, 1.5f, dropout, i,
           &trained}};
}

struct Adapters : ::testing::Test {
  std::unique_ptr<ops::Device> device = ops::make_reference_device();
  ops::PreparedLayout layout = device->prepare({{0, 3, 3, 8}, {0, 1, 2, 0, 1, 2, 3, 4}});
  Dropout draws{77, device->row_ids(std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8})};
  ForwardContext pass{*device, layout},
      dropping{*device, layout, ops::Precision::f32, nullptr, &draws};
  Tensor x = random_tensor(*device, {8, 12}, 1);
};

TEST_F(Adapters, GradientsOfALinear) {
  auto parameters = adapted(*device, {{5, 12}}, false);
  test::gradcheck(LinearModule{linear(parameters, 0)}, parameters, x, pass);
}

TEST_F(Adapters, GradientsOfALinearWithDropout) {
  auto parameters = adapted(*device, {{5, 12}}, false);
  const LinearModule module{linear(parameters, 0, 0.4)};
  test::gradcheck(module, parameters, x, dropping);
  Saved nothing = Saved::nothing();
  EXPECT_NE(ops::to_host(*device, module.forward(x, dropping, nothing)),
            ops::to_host(*device, module.forward(x, pass, nothing)));
}

TEST_F(Adapters, GradientsOfAnMlp) {
  auto parameters = adapted(*device, {{10, 12}, {10, 12}, {12, 10}}, false);
  test::gradcheck(
      Mlp{linear(parameters, 0, 0.2), linear(parameters, 1, 0.2), linear(parameters, 2, 0.2)},
      parameters, x, dropping);
}

TEST_F(Adapters, GradientsOfAttention) {
  auto parameters = adapted(*device, {{16, 12}, {8, 12}, {8, 12}, {12, 16}}, false);
  RotaryTable rotary(*device, {1.0, 0.1});
  rotary.reserve(5);
  const Attention<PlainProjections> attention{
      {linear(parameters, 0), linear(parameters, 1), linear(parameters, 2)},
      linear(parameters, 3),
      {4, 2, 4, 0.5f},
      &rotary};
  test::gradcheck(attention, parameters, x, pass);
}

// The norm is a constant in DoRA's backward pass (sec. 4.3), so the gradients of A and B differ
// from those of the whole formula; the golden DoRA curve covers them. This test covers those of the
// input and of the magnitudes.
TEST_F(Adapters, GradientsOfMagnitudes) {
  auto parameters = adapted(*device, {{5, 12}}, true);
  const LinearModule module{linear(parameters, 0)};
  Saved saved;
  const Tensor y = module.forward(x, pass, saved);
  const auto weights = test::random_values(y.count(), 99);
  const Tensor dx = module.backward(ops::from_host(*device, y.shape(), weights), pass, saved);
  EXPECT_TRUE(saved.empty());
  const auto loss = [&] {
    Saved nothing = Saved::nothing();
    return test::dot(ops::to_host(*device, module.forward(x, pass, nothing)), weights);
  };
  test::expect_slope(*device, x, dx, 1000, loss, "input");
  test::expect_slope(*device, parameters.at("m0").value, parameters.at("m0").grad, 1001, loss,
                     "magnitude");
}

TEST_F(Adapters, FrozenWeightsCostNoGradientAndNoMoments) {
  auto parameters = adapted(*device, {{500, 400}}, false);
  optim::AdamW optimizer(parameters);
  EXPECT_EQ(parameters.grads().count(), 3 * 900);
  EXPECT_EQ(optimizer.exp_avg().count(), 3 * 900);
  EXPECT_FALSE(parameters.at("w0").grad);
  EXPECT_EQ(parameters.trained().all().size(), 2u);
}

TEST_F(Adapters, AnUpdateLeavesFrozenWeightsAloneAndMeasuresTheOthers) {
  auto parameters = adapted(*device, {{5, 12}}, false);
  const auto frozen = ops::to_host(*device, parameters.at("w0").value),
             before = ops::to_host(*device, parameters.at("b0").value);
  device->fill(parameters.grads(), 0.5f);
  optim::AdamW optimizer(parameters);
  const auto report = value_or_throw(optimizer.step(0.1, {.weight_decay = 0.1}));
  EXPECT_NEAR(report.grad_norm, 0.5 * std::sqrt(3 * 17), 1e-6);
  EXPECT_EQ(ops::to_host(*device, parameters.at("w0").value), frozen);
  EXPECT_NE(ops::to_host(*device, parameters.at("b0").value), before);
}

TEST_F(Adapters, AnAdapterThatIsOffOrZeroIsTheBaseToTheBit) {
  auto parameters = adapted(*device, {{5, 12}}, false);
  Linear module = linear(parameters, 0);
  const Linear base{module.weight};
  Saved nothing = Saved::nothing();
  const auto answer = [&](const Linear& of) {
    return ops::to_host(*device, of.forward(x, pass, nothing));
  };
  EXPECT_NE(answer(module), answer(base));
  bool used = false;
  module.lora.enabled = &used;
  EXPECT_EQ(answer(module), answer(base));
  used = true;
  device->fill(parameters.at("b0").value, 0);
  EXPECT_EQ(answer(module), answer(base));
}

TEST_F(Adapters, WhatIsFrozenKeepsNoInputForBackward) {
  Parameters parameters(*device, {{"w", {5, 12}, {}, false}, {"t", {1}}}, true);
  Saved saved;
  Linear{&parameters.at("w")}.forward(x, pass, saved);
  EXPECT_TRUE(saved.empty());
}

}  // namespace
}  // namespace troupe::engine::nn

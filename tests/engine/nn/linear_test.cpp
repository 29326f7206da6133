// Grouped layers with one input: equal bits as one after the other, forward and backward, for all
// kinds of layers.
#include "engine/nn/linear.h"

#include <cstring>

#include "engine/base/text/text.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/support/gradcheck.h"

namespace troupe::engine::nn {
namespace {

using test::random_tensor;

constexpr bool on = true;
constexpr int rows = 70, width = 48;

/// Three layers, the second with a bias; of the last one the weight may be frozen, and may have an
/// adapter.
struct Layers {
  Layers(ops::Device& device, bool frozen, bool adapted)
      : parameters(device, wanted(frozen, adapted), true) {
    test::randomize(parameters, 2, 0.5);
    layers = {Linear{&parameters.at("q")}, Linear{&parameters.at("k"), &parameters.at("bias")},
              Linear{&parameters.at("v")}};
    if (adapted)
      layers[2].lora = {&parameters.at("a"), &parameters.at("b"), nullptr, 1.5F, 0, 0, &on};
  }
  static std::vector<ParameterSpec> wanted(bool frozen, bool adapted) {
    std::vector<ParameterSpec> all = {
        {"v", {40, width}, {}, !frozen}, {"q", {96, width}}, {"k", {33, width}}, {"bias", {33}}};
    if (adapted)
      all.insert(all.end(), {{"a", {3, width}, {}, true, true}, {"b", {40, 3}, {}, true, true}});
    return all;
  }

  Parameters parameters;
  std::vector<Linear> layers;
};

struct Outcome {
  std::vector<float> outputs, dx, gradients;
  bool operator==(const Outcome& other) const {
    const auto same = [](const auto& x, const auto& y) {
      return x.size() == y.size() && std::memcmp(x.data(), y.data(), 4 * x.size()) == 0;
    };
    return same(outputs, other.outputs) && same(dx, other.dx) && same(gradients, other.gradients);
  }
};

/// Two micro-batches of one step, so that gradients are assigned and then added to.
Outcome run(ops::Device& device, bool together, bool frozen, bool adapted,
            ops::Precision precision) {
  Layers of(device, frozen, adapted);
  const Linear &q = of.layers[0], &k = of.layers[1], &v = of.layers[2];
  const ops::PreparedLayout layout = device.prepare({{0, rows}, {}});
  const ForwardContext pass{device, layout, precision};
  Outcome outcome;
  Tensor dx = device.empty({rows, width});
  for (const std::uint64_t batch : {1, 2}) {
    const Tensor x = random_tensor(device, {rows, width}, batch);
    Saved saved;
    const std::vector<Tensor> y =
        together ? forward_grouped({&q, &k, &v}, x, pass, saved)
                 : std::vector<Tensor>{q.forward(x, pass, saved), k.forward(x, pass, saved),
                                       v.forward(x, pass, saved)};
    for (const Tensor& each : y) {
      const auto values = ops::to_host(device, each);
      outcome.outputs.insert(outcome.outputs.end(), values.begin(), values.end());
    }
    if (together) {
      backward_grouped({{v, y[2]}, {k, y[1]}, {q, y[0]}}, pass, saved, dx);
    } else {
      v.backward(y[2], pass, saved, dx, false);
      k.backward(y[1], pass, saved, dx, true);
      q.backward(y[0], pass, saved, dx, true);
    }
    EXPECT_TRUE(saved.empty());
  }
  outcome.dx = ops::to_host(device, dx);
  outcome.gradients = ops::to_host(device, of.parameters.grads());
  return outcome;
}

TEST(GroupedLayers, HaveTheBitsOfOneAfterTheOther) {
  for (const auto& device : {std::shared_ptr<ops::Device>(ops::make_reference_device()),
                             std::shared_ptr<ops::Device>(ops::make_cpu_device({.threads = 2}))}) {
    for (const auto precision : {ops::Precision::f32, ops::Precision::bf16}) {
      for (const auto& [frozen, adapted] : {std::pair{false, false}, {true, false}, {true, true}})
        EXPECT_TRUE(run(*device, true, frozen, adapted, precision) ==
                    run(*device, false, frozen, adapted, precision))
            << frozen << adapted;
    }
  }
}

}  // namespace
}  // namespace troupe::engine::nn

// gradcheck: a module's backward against central differences of its forward, along random
// directions.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/base/random/random.h"
#include "engine/nn/compose.h"
#include "engine/nn/parameters.h"

namespace troupe::test {

/// Random numbers in [-scale, scale); equal streams give equal numbers.
inline std::vector<float> random_values(std::int64_t count, std::uint64_t stream,
                                        double scale = 1) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(
        static_cast<float>(scale * (2 * uniform(17, stream, static_cast<std::uint64_t>(i)) - 1)));
  return values;
}

inline Tensor random_tensor(engine::ops::Device& device, Shape shape, std::uint64_t stream,
                            double scale = 1) {
  return engine::ops::from_host(device, shape, random_values(shape.count(), stream, scale));
}

inline void randomize(engine::nn::Parameters& parameters, std::uint64_t stream, double scale) {
  parameters.device().upload(parameters.values(), random_values(parameters.count(), stream, scale));
}

inline double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

/// L = sum(y * weights). Moves `where` along a random direction and compares dL with the gradient's
/// projection.
template <class LossOf>
void expect_slope(engine::ops::Device& device, Tensor where, const Tensor& gradient,
                  std::uint64_t stream, LossOf&& loss_of, const char* what) {
  const std::vector<float> start = engine::ops::to_host(device, where),
                           direction = random_values(where.count(), stream);
  const double h = 1e-2;
  const auto at = [&](double step) {
    std::vector<float> moved = start;
    for (std::size_t i = 0; i < moved.size(); ++i)
      moved[i] += static_cast<float>(step * static_cast<double>(direction[i]));
    device.upload(where, moved);
    return loss_of();
  };
  const double measured = (at(h) - at(-h)) / (2 * h);
  device.upload(where, start);
  const double claimed = dot(engine::ops::to_host(device, gradient), direction);
  const double size =
      std::sqrt(
          dot(engine::ops::to_host(device, gradient), engine::ops::to_host(device, gradient)) / 3) +
      1e-3;
  EXPECT_NEAR(measured, claimed, 4e-3 * size + 2e-3 * std::abs(claimed)) << what;
}

template <engine::nn::Module M>
void gradcheck(const M& module, engine::nn::Parameters& parameters, Tensor x,
               const engine::nn::ForwardContext& pass) {
  using engine::nn::Saved;
  engine::ops::Device& device = pass.device;
  Saved saved;
  const Tensor y = module.forward(x, pass, saved);
  const std::vector<float> weights = random_values(y.count(), 99);
  device.fill(parameters.grads(), 0);
  const Tensor dx =
      module.backward(engine::ops::from_host(device, y.shape(), weights), pass, saved);
  EXPECT_TRUE(saved.empty()) << "backward left something on the stack";
  const auto loss = [&] {
    Saved nothing = Saved::nothing();
    return dot(engine::ops::to_host(device, module.forward(x, pass, nothing)), weights);
  };
  for (std::uint64_t trial = 0; trial < 3; ++trial) {
    expect_slope(device, x, dx, 1000 + trial, loss, "input");
    for (auto& p : parameters.trained().all())
      expect_slope(device, p.value, p.grad, 2000 + trial, loss, p.name.c_str());
  }
}

}  // namespace troupe::test

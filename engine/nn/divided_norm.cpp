#include "engine/nn/divided_norm.h"

#include <cmath>
#include <vector>

#include "engine/ops/host_values.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::nn {
namespace {

std::span<float> row(std::span<float> values, std::size_t index, std::size_t width) {
  return values.subspan(index * width, width);
}

}  // namespace

void DividedNorm::forward(const Tensor& x, Tensor& y, Tensor& inverse) const {
  ops::HostValues in(device, x), scale(device, gain.f32(device)), out(device, y),
      inverses(device, inverse);
  const std::size_t columns = scale.values().size(), rows = inverses.values().size();
  std::vector<double> squares(rows, 0.0);
  for (std::size_t t = 0; t < rows && gain.shard.first; ++t)
    for (const float value : row(in.values(), t, columns)) squares[t] += double{value} * value;
  parallel::all_reduce_sum(tp, squares, gain.name);
  for (std::size_t t = 0; t < rows; ++t) {
    const auto of_row =
        static_cast<float>(1 / std::sqrt(squares[t] / static_cast<double>(width()) + double{eps}));
    inverses.values()[t] = of_row;
    const auto from = row(in.values(), t, columns), to = row(out.values(), t, columns);
    for (std::size_t c = 0; c < columns; ++c)
      to[c] = from[c] * of_row * (scale.values()[c] + offset);
  }
  out.store();
  inverses.store();
}

void DividedNorm::backward(const Tensor& x, const Tensor& inverse, const Tensor& dy, Tensor& dx,
                           Tensor& dgain) const {
  ops::HostValues in(device, x), scale(device, gain.f32(device)), inverses(device, inverse),
      upper(device, dy), lower(device, dx), sums(device, dgain);
  const std::size_t columns = scale.values().size(), rows = inverses.values().size();
  std::vector<double> dots(rows, 0.0);
  for (std::size_t t = 0; t < rows; ++t) {
    const auto values = row(in.values(), t, columns), grads = row(upper.values(), t, columns);
    for (std::size_t c = 0; c < columns; ++c)
      dots[t] += double{(scale.values()[c] + offset) * grads[c]} * values[c];
  }
  parallel::all_reduce_sum(tp, dots, gain.name);
  for (std::size_t t = 0; t < rows; ++t) {
    const float of_row = inverses.values()[t];
    // The gradient through the sum, once for columns that several ranks have.
    const double through =
        gain.shard.first ? dots[t] * of_row * of_row * of_row / static_cast<double>(width()) : 0;
    const auto values = row(in.values(), t, columns), grads = row(upper.values(), t, columns),
               to = row(lower.values(), t, columns);
    for (std::size_t c = 0; c < columns; ++c) {
      to[c] = of_row * (scale.values()[c] + offset) * grads[c] -
              static_cast<float>(through) * values[c];
      sums.values()[c] += grads[c] * values[c] * of_row;
    }
  }
  lower.store();
  sums.store();
}

}  // namespace troupe::engine::nn

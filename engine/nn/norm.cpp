#include "engine/nn/norm.h"

#include <cmath>
#include <vector>

#include "engine/collectives/tensor_group.h"
#include "engine/nn/parameters.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::nn {

namespace {

/// RMSNorm of whole rows, of which each rank of `tp` has the columns of its part of `gain`. Columns
/// that several ranks have count on the first one (Shard::first). Collective over `tp`; the results
/// of a row do not depend on other rows.
struct DividedNorm {
  ops::Device& device;
  collectives::TensorGroup& tp;
  const Parameter& gain;  ///< this rank's part [C] of the gain [D]
  float eps, offset;      ///< as Norm's

  /// x [T, C] -> y [T, C], and inverse [T]: 1 / sqrt(mean of squares of the row + eps).
  void forward(const Tensor& x, Tensor& y, Tensor& inverse) const;
  /// Assigns dx [T, C] and adds to dgain [C]. Where ranks share columns, dy and dx are their shares
  /// of the gradient.
  void backward(const Tensor& x, const Tensor& inverse, const Tensor& dy, Tensor& dx,
                Tensor& dgain) const;

 private:
  std::int64_t width() const { return gain.logical_shape().count(); }
};

std::span<const float> row(const std::vector<float>& values, std::size_t index, std::size_t width) {
  return std::span(values).subspan(index * width, width);
}
std::span<float> row(std::vector<float>& values, std::size_t index, std::size_t width) {
  return std::span(values).subspan(index * width, width);
}

void DividedNorm::forward(const Tensor& x, Tensor& y, Tensor& inverse) const {
  const std::vector<float> in = ops::to_host(device, x),
                           scale = ops::to_host(device, gain.f32(device));
  const auto rows = static_cast<std::size_t>(inverse.count()), columns = scale.size();
  std::vector<float> out(in.size()), inverses(rows);
  std::vector<double> squares(rows, 0.0);
  for (std::size_t t = 0; t < rows && gain.shard.first; ++t)
    for (const float value : row(in, t, columns)) squares[t] += double{value} * value;
  parallel::all_reduce_sum(tp.ranks(), squares, gain.name);
  for (std::size_t t = 0; t < rows; ++t) {
    const auto of_row =
        static_cast<float>(1 / std::sqrt(squares[t] / static_cast<double>(width()) + double{eps}));
    inverses[t] = of_row;
    const auto from = row(in, t, columns);
    const auto to = row(out, t, columns);
    for (std::size_t c = 0; c < columns; ++c) to[c] = from[c] * of_row * (scale[c] + offset);
  }
  device.upload(y, out);
  device.upload(inverse, inverses);
}

void DividedNorm::backward(const Tensor& x, const Tensor& inverse, const Tensor& dy, Tensor& dx,
                           Tensor& dgain) const {
  const std::vector<float> in = ops::to_host(device, x), upper = ops::to_host(device, dy),
                           scale = ops::to_host(device, gain.f32(device)),
                           inverses = ops::to_host(device, inverse);
  std::vector<float> lower(in.size()), sums = ops::to_host(device, dgain);
  const std::size_t columns = scale.size(), rows = inverses.size();
  std::vector<double> dots(rows, 0.0);
  for (std::size_t t = 0; t < rows; ++t) {
    const auto values = row(in, t, columns), grads = row(upper, t, columns);
    for (std::size_t c = 0; c < columns; ++c)
      dots[t] += double{(scale[c] + offset) * grads[c]} * values[c];
  }
  parallel::all_reduce_sum(tp.ranks(), dots, gain.name);
  for (std::size_t t = 0; t < rows; ++t) {
    const float of_row = inverses[t];
    // The gradient through the sum, once for columns that several ranks have.
    const double through =
        gain.shard.first ? dots[t] * of_row * of_row * of_row / static_cast<double>(width()) : 0;
    const auto values = row(in, t, columns), grads = row(upper, t, columns);
    const auto to = row(lower, t, columns);
    for (std::size_t c = 0; c < columns; ++c) {
      to[c] = of_row * (scale[c] + offset) * grads[c] - static_cast<float>(through) * values[c];
      sums[c] += grads[c] * values[c] * of_row;
    }
  }
  device.upload(dx, lower);
  device.upload(dgain, sums);
}

}  // namespace

// What LayerNorm multiplies by: the gain with its offset, [D].
Tensor Norm::scale(const ForwardContext& pass) const {
  const Tensor own = gain->f32(pass.device);
  if (offset == 0) return own;
  Tensor out = pass.device.empty(own.shape());
  pass.device.fill(out, offset);
  pass.device.add(own, out, out);
  return out;
}

Tensor Norm::forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
  if (gain == nullptr) return x;
  Tensor y = pass.device.empty(x.shape());
  Tensor inverse = pass.device.empty({x.shape()[0]});  // [T]
  saved.push(x);
  if (tp != nullptr) {
    DividedNorm{pass.device, *tp, *gain, eps, offset}.forward(x, y, inverse);
  } else if (kind == Kind::rms) {
    pass.device.rms_norm(x, gain->f32(pass.device), eps, y, inverse, offset);
  } else {
    Tensor mean = pass.device.empty({x.shape()[0]});  // [T]
    pass.device.layer_norm(x, scale(pass), bias ? bias->f32(pass.device) : Tensor(), eps, y, mean,
                           inverse);
    saved.push(mean);
  }
  saved.push(inverse);
  return y;
}

Tensor Norm::backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const {
  if (gain == nullptr) return dy;
  Tensor dx = pass.device.empty(dy.shape());
  Tensor unused =
      gain->grad ? Tensor() : pass.device.empty(gain->value.shape());  // of a frozen gain
  if (unused) pass.device.fill(unused, 0);
  GradientSum sum(pass.device, gain->grad ? gain->grad : unused);
  const Tensor inverse = saved.pop();
  if (tp != nullptr) {
    DividedNorm{pass.device, *tp, *gain, eps, offset}.backward(saved.pop(), inverse, dy, dx,
                                                               sum.f32());
  } else if (kind == Kind::rms) {
    pass.device.rms_norm_backward(saved.pop(), gain->f32(pass.device), inverse, dy, dx, sum.f32(),
                                  offset);
  } else {
    const Tensor mean = saved.pop();
    if (bias && bias->grad) {
      GradientSum bias_sum(pass.device, bias->grad);
      pass.device.bias_backward(dy, bias_sum.f32());
      bias_sum.finish();
    }
    pass.device.layer_norm_backward(saved.pop(), scale(pass), mean, inverse, dy, dx, sum.f32());
  }
  sum.finish();
  return dx;
}

}  // namespace troupe::engine::nn

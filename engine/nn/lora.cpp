#include "engine/nn/lora.h"

#include <cmath>

#include "engine/nn/tensor_parallel.h"

namespace troupe::engine::nn {
namespace {

// values [F] *= factors [F]
void multiply(ops::Device& device, const Tensor& values, const Tensor& factors) {
  Tensor row = values.view({1, values.count()});
  device.scale_columns(row, factors);
}

}  // namespace

const Tensor& Lora::dropped(const Tensor& x, const Pass& pass, Tensor& room) const {
  if (pass.dropout == nullptr || dropout == 0) return x;
  const std::int64_t first = a->shard.axis == 1 ? a->shard.begin : 0;
  if (!room) room = pass.device.empty(x.shape());
  pass.device.dropout(x, {dropout, pass.dropout->key, module, pass.dropout->rows, first}, room);
  return room;
}

Tensor Lora::down(const Tensor& x, const Pass& pass, parallel::Communicator* tp) const {
  Tensor room, u = pass.device.empty({x.shape()[0], a->value.shape()[0]});  // [T, R]
  pass.device.gemm(dropped(x, pass, room), a->value, u,
                   {.transpose_b = true, .precision = pass.precision});
  sum_over(tp, pass.device, u, a->name);
  pass.device.scale(u, scale);
  return u;
}

// 1 / |row of W + scale B A|, [F]; `tp`: the ranks that have the other columns of the rows.
Tensor Lora::inverse_norms(const Tensor& weight, const Pass& pass,
                           parallel::Communicator* tp) const {
  ops::Device& device = pass.device;
  Tensor whole = device.empty(weight.shape()), up = device.empty(b->value.shape()),
         norms = device.empty({weight.shape()[0]});
  device.copy(weight, whole);
  device.copy(b->value, up);
  device.scale(up, scale);
  device.gemm(up, a->value, whole, {.accumulate = true});
  device.row_squares(whole, norms);
  sum_over(tp, device, norms, b->name);
  auto values = ops::to_host(device, norms);
  for (float& value : values) value = static_cast<float>(1 / std::sqrt(static_cast<double>(value)));
  device.upload(norms, values);
  return norms;
}

void Lora::forward(const Tensor& x, const Tensor& weight, const Pass& pass,
                   parallel::Communicator* tp, Saved& saved, Tensor& y) const {
  const Tensor u = down(x, pass, tp);
  pass.device.gemm(u, b->value, y,
                   {.transpose_b = true, .accumulate = true, .precision = pass.precision});
  saved.push(u);
  if (magnitude == nullptr) return;
  Tensor gain = inverse_norms(weight, pass, tp);
  if (saved.keeps()) {
    Tensor direction = pass.device.empty(y.shape()), inverse = pass.device.empty(gain.shape());
    pass.device.copy(y, direction);
    pass.device.copy(gain, inverse);
    saved.push(direction);
    saved.push(inverse);
  }
  multiply(pass.device, gain, magnitude->value);
  pass.device.scale_columns(y, gain);
}

Lora::Slope Lora::undo(const Tensor& dy, const Pass& pass, Saved& saved) const {
  if (magnitude == nullptr) return {dy, saved.pop()};
  ops::Device& device = pass.device;
  Tensor inverse = saved.pop();
  const Tensor direction = saved.pop();
  Tensor dots = device.empty(inverse.shape()), dz = device.empty(dy.shape());
  device.fill(dots, 0);
  device.column_dots(dy, direction, dots);
  multiply(device, dots, inverse);
  device.add(magnitude->grad, dots, magnitude->grad);
  multiply(device, inverse, magnitude->value);
  device.copy(dy, dz);
  device.scale_columns(dz, inverse);
  return {dz, saved.pop()};
}

void Lora::backward(const Tensor& x, const Slope& slope, const Pass& pass, Tensor& dx) const {
  ops::Device& device = pass.device;
  device.gemm(slope.dz, slope.down, b->grad,
              {.transpose_a = true, .accumulate = true, .precision = pass.precision});
  Tensor du = device.empty(slope.down.shape());  // [T, R]
  device.gemm(slope.dz, b->value, du, {.precision = pass.precision});
  below(x, du, pass, dx);
}

void Lora::below(const Tensor& x, Tensor& du, const Pass& pass, Tensor& dx) const {
  ops::Device& device = pass.device;
  device.scale(du, scale);
  Tensor room;
  device.gemm(du, dropped(x, pass, room), a->grad,
              {.transpose_a = true, .accumulate = true, .precision = pass.precision});
  if (!room)
    return device.gemm(du, a->value, dx, {.accumulate = true, .precision = pass.precision});
  device.gemm(du, a->value, room, {.precision = pass.precision});
  const Tensor kept = dropped(room, pass, room);
  device.add(dx, kept, dx);
}

}  // namespace troupe::engine::nn

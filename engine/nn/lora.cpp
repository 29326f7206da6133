#include "engine/nn/lora.h"

#include <cmath>

#include "engine/nn/sequence_parallel.h"
#include "engine/nn/tensor_parallel.h"

namespace troupe::engine::nn {
namespace {

// values [F] *= factors [F]
void multiply(ops::Device& device, const Tensor& values, const Tensor& factors) {
  Tensor row = values.view({1, values.count()});
  device.scale_columns(row, factors);
}

}  // namespace

const Tensor& Lora::dropped(const Tensor& x, const ForwardContext& pass, Tensor& storage) const {
  if (pass.dropout == nullptr || dropout == 0) return x;
  const std::int64_t first = a->shard.axis == 1 ? a->shard.begin : 0;
  if (!storage) storage = pass.device.empty(x.shape());
  pass.device.dropout(x, {dropout, pass.dropout->key, module, pass.dropout->rows, first}, storage);
  return storage;
}

Tensor Lora::down_project(const Tensor& x, const ForwardContext& pass,
                          collectives::TensorGroup* tp) const {
  Tensor storage;
  Tensor u = pass.device.empty({x.shape()[0], a->value.shape()[0]});  // [T, R]
  pass.device.gemm(dropped(x, pass, storage), a->value, u,
                   {.transpose_b = true, .precision = pass.precision});
  if (tp != nullptr) tp->all_reduce(u, a->name);
  pass.device.scale(u, scale);
  return u;
}

// 1 / |row of W + scale B A|, [F]; `tp`: the ranks that have the other columns of the rows.
Tensor Lora::inverse_norms(const Tensor& weight, const ForwardContext& pass,
                           collectives::TensorGroup* tp) const {
  ops::Device& device = pass.device;
  Tensor whole = device.empty(weight.shape()), up = device.empty(b->value.shape()),
         norms = device.empty({weight.shape()[0]});
  device.copy(weight, whole);
  device.copy(b->value, up);
  device.scale(up, scale);
  device.gemm(up, a->value, whole, {.accumulate = true});
  device.row_squares(whole, norms);
  if (tp != nullptr) tp->all_reduce(norms, b->name);
  auto values = ops::to_host(device, norms);
  for (float& value : values) value = static_cast<float>(1 / std::sqrt(static_cast<double>(value)));
  device.upload(norms, values);
  return norms;
}

void Lora::forward(const Tensor& x, const Tensor& weight, const ForwardContext& pass,
                   collectives::TensorGroup* tp, Saved& saved, Tensor& y) const {
  const Tensor u = down_project(x, pass, tp);
  // Behind a sum over `tp`, y has this rank's rows where the group divides them (rows_group); x and
  // what backward needs of the projection have all rows.
  pass.device.gemm(tp != nullptr ? own_rows(pass, u) : u, b->value, y,
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

Lora::OutputGrad Lora::output_backward(const Tensor& dy, const ForwardContext& pass,
                                       Saved& saved) const {
  if (magnitude == nullptr) return {dy, saved.pop()};
  ops::Device& device = pass.device;
  Tensor inverse = saved.pop(), direction = saved.pop(), dz = device.empty(dy.shape());
  // Scaled before the sum: the sum over several micro-batches is one sum.
  device.scale_columns(direction, inverse);
  device.column_dots(dy, direction, magnitude->grad);
  multiply(device, inverse, magnitude->value);
  device.copy(dy, dz);
  device.scale_columns(dz, inverse);
  return {dz, saved.pop()};
}

void Lora::backward(const Tensor& x, const OutputGrad& grad, const ForwardContext& pass,
                    Tensor& dx) const {
  ops::Device& device = pass.device;
  device.gemm(grad.dz, grad.down, b->grad,
              {.transpose_a = true, .accumulate = true, .precision = pass.precision});
  Tensor du = device.empty(grad.down.shape());  // [T, R]
  device.gemm(grad.dz, b->value, du, {.precision = pass.precision});
  down_backward(x, du, pass, dx);
}

void Lora::down_backward(const Tensor& x, Tensor& du, const ForwardContext& pass,
                         Tensor& dx) const {
  ops::Device& device = pass.device;
  device.scale(du, scale);
  Tensor storage;
  device.gemm(du, dropped(x, pass, storage), a->grad,
              {.transpose_a = true, .accumulate = true, .precision = pass.precision});
  if (!storage)
    return device.gemm(du, a->value, dx, {.accumulate = true, .precision = pass.precision});
  device.gemm(du, a->value, storage, {.precision = pass.precision});
  const Tensor kept = dropped(storage, pass, storage);
  device.add(dx, kept, dx);
}

}  // namespace troupe::engine::nn

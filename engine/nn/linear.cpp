#include "engine/nn/linear.h"

#include "engine/nn/tp.h"

namespace troupe::engine::nn {

Tensor Linear::forward(const Tensor& x, const Pass& pass, Saved& saved) const {
  saved.push(x);
  Tensor y = pass.device.empty({x.shape()[0], weight->value.shape()[0]});  // [T, F]
  pass.device.gemm(x, weight->value, y, {.transpose_b = true, .precision = pass.precision});
  sum_over(tp, pass.device, y, weight->name);
  if (bias) pass.device.add_bias(y, bias->value);
  return y;
}

void Linear::backward(const Tensor& dy, const Pass& pass, Saved& saved, Tensor& dx, bool accumulate) const {
  const Tensor x = saved.pop();
  pass.device.gemm(dy, weight->value, dx, {.accumulate = accumulate, .precision = pass.precision});
  pass.device.gemm(dy, x, weight->grad, {.transpose_a = true, .accumulate = true, .precision = pass.precision});
  if (bias) pass.device.bias_backward(dy, bias->grad);
}

}  // namespace troupe::engine::nn

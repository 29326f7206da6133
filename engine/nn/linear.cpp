#include "engine/nn/linear.h"

#include "engine/nn/tp.h"

namespace troupe::engine::nn {

Tensor Linear::forward(const Tensor& x, const Pass& pass, Saved& saved) const {
  if (weight->grad || lora) saved.push(x);
  Tensor y = pass.device.empty({x.shape()[0], weight->value.shape()[0]});  // [T, F]
  weight->multiply(pass.device, x, pass.precision, pass.packed, y);
  sum_over(tp, pass.device, y, weight->name);
  if (lora) lora.forward(x, weight->value, pass, tp, saved, y);
  if (bias) pass.device.add_bias(y, bias->value);
  return y;
}

void Linear::backward(const Tensor& dy, const Pass& pass, Saved& saved, Tensor& dx, bool accumulate) const {
  const Lora::Slope slope = lora ? lora.undo(dy, pass, saved) : Lora::Slope{dy, {}};
  pass.device.gemm(slope.dz, weight->value, dx, {.accumulate = accumulate, .precision = pass.precision});
  if (bias && bias->grad) pass.device.bias_backward(dy, bias->grad);
  if (!weight->grad && !lora) return;
  const Tensor x = saved.pop();
  if (weight->grad)
    pass.device.gemm(slope.dz, x, weight->grad, {.transpose_a = true, .accumulate = weight->adds(), .precision = pass.precision});
  if (lora) lora.backward(x, slope, pass, dx);
}

}  // namespace troupe::engine::nn

#include "engine/nn/norm.h"

namespace troupe::engine::nn {

Tensor Norm::forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
  if (gain == nullptr) return x;
  Tensor y = pass.device.empty(x.shape());
  Tensor inverse = pass.device.empty({x.shape()[0]});  // [T]
  saved.push(x);
  if (kind == Kind::rms) {
    pass.device.rms_norm(x, gain->value, eps, y, inverse, offset);
  } else {
    Tensor mean = pass.device.empty({x.shape()[0]});  // [T]
    pass.device.layer_norm(x, gain->value, bias ? bias->value : Tensor(), eps, y, mean, inverse);
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
  Tensor& dgain = gain->grad ? gain->grad : unused;
  const Tensor inverse = saved.pop();
  if (kind == Kind::rms) {
    pass.device.rms_norm_backward(saved.pop(), gain->value, inverse, dy, dx, dgain, offset);
    return dx;
  }
  const Tensor mean = saved.pop();
  if (bias && bias->grad) pass.device.bias_backward(dy, bias->grad);
  pass.device.layer_norm_backward(saved.pop(), gain->value, mean, inverse, dy, dx, dgain);
  return dx;
}

}  // namespace troupe::engine::nn

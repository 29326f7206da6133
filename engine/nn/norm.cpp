#include "engine/nn/norm.h"

#include "engine/nn/divided_norm.h"

namespace troupe::engine::nn {

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
    pass.device.layer_norm(x, gain->f32(pass.device), bias ? bias->f32(pass.device) : Tensor(), eps,
                           y, mean, inverse);
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
  const Tensor weight = gain->f32(pass.device), inverse = saved.pop();
  if (tp != nullptr) {
    DividedNorm{pass.device, *tp, *gain, eps, offset}.backward(saved.pop(), inverse, dy, dx,
                                                               sum.f32());
  } else if (kind == Kind::rms) {
    pass.device.rms_norm_backward(saved.pop(), weight, inverse, dy, dx, sum.f32(), offset);
  } else {
    const Tensor mean = saved.pop();
    if (bias && bias->grad) {
      GradientSum bias_sum(pass.device, bias->grad);
      pass.device.bias_backward(dy, bias_sum.f32());
      bias_sum.finish();
    }
    pass.device.layer_norm_backward(saved.pop(), weight, mean, inverse, dy, dx, sum.f32());
  }
  sum.finish();
  return dx;
}

}  // namespace troupe::engine::nn

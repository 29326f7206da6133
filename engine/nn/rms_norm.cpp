#include "engine/nn/rms_norm.h"

namespace troupe::engine::nn {

Tensor RmsNorm::forward(const Tensor& x, const Pass& pass, Saved& saved) const {
  Tensor y = pass.device.empty(x.shape());
  Tensor inv_rms = pass.device.empty({x.shape()[0]});  // [T]
  pass.device.rms_norm(x, gain->value, eps, y, inv_rms);
  saved.push(x);
  saved.push(inv_rms);
  return y;
}

Tensor RmsNorm::backward(const Tensor& dy, const Pass& pass, Saved& saved) const {
  const Tensor inv_rms = saved.pop();
  const Tensor x = saved.pop();
  Tensor dx = pass.device.empty(x.shape());
  Tensor unused = gain->grad ? Tensor() : pass.device.empty(gain->value.shape());  // of a frozen gain
  if (unused) pass.device.fill(unused, 0);
  pass.device.rms_norm_backward(x, gain->value, inv_rms, dy, dx, gain->grad ? gain->grad : unused);
  return dx;
}

}  // namespace troupe::engine::nn

#include "engine/nn/mlp.h"

#include "engine/nn/tp.h"

namespace troupe::engine::nn {

Tensor Mlp::forward(const Tensor& x, const Pass& pass, Saved& saved) const {
  const Tensor g = gate.forward(x, pass, saved);  // [T, F]
  const Tensor u = up.forward(x, pass, saved);    // [T, F]
  saved.push(g);
  saved.push(u);
  Tensor h = pass.device.empty(g.shape());
  pass.device.gated(ops::Activation::silu, g, u, h);
  return down.forward(h, pass, saved);
}

Tensor Mlp::backward(const Tensor& dy, const Pass& pass, Saved& saved) const {
  const std::int64_t rows = dy.shape()[0];
  Tensor dh = pass.device.empty({rows, down.weight->value.shape()[1]});
  down.backward(dy, pass, saved, dh, false);
  const Tensor u = saved.pop(), g = saved.pop();
  Tensor dg = pass.device.empty(g.shape()), du = pass.device.empty(u.shape());
  pass.device.gated_backward(ops::Activation::silu, g, u, dh, dg, du);
  Tensor dx = pass.device.empty({rows, gate.weight->value.shape()[1]});
  up.backward(du, pass, saved, dx, false);
  gate.backward(dg, pass, saved, dx, true);
  sum_over(down.tp, pass.device, dx, gate.weight->name);
  return dx;
}

}  // namespace troupe::engine::nn

#include "engine/nn/mlp.h"

#include "engine/nn/tp.h"

namespace troupe::engine::nn {

Tensor Mlp::forward(const Tensor& x, const Pass& pass, Saved& saved) const {
  const Tensor g = gate.weight ? gate.forward(x, pass, saved) : Tensor();  // [T, F]
  const Tensor u = up.forward(x, pass, saved);                             // [T, F]
  if (g) saved.push(g);
  saved.push(u);
  Tensor h = pass.device.empty(u.shape());
  if (g)
    pass.device.gated(activation, g, u, h);
  else
    pass.device.activate(activation, u, h);
  return down.forward(h, pass, saved);
}

Tensor Mlp::backward(const Tensor& dy, const Pass& pass, Saved& saved) const {
  const std::int64_t rows = dy.shape()[0];
  Tensor dh = pass.device.empty({rows, down.weight->value.shape()[1]});
  down.backward(dy, pass, saved, dh, false);
  const Tensor u = saved.pop(), g = gate.weight ? saved.pop() : Tensor();
  Tensor du = pass.device.empty(u.shape()), dg = g ? pass.device.empty(g.shape()) : Tensor();
  if (g)
    pass.device.gated_backward(activation, g, u, dh, dg, du);
  else
    pass.device.activate_backward(activation, u, dh, du);
  Tensor dx = pass.device.empty({rows, up.weight->value.shape()[1]});
  up.backward(du, pass, saved, dx, false);
  if (g) gate.backward(dg, pass, saved, dx, true);
  sum_over(down.tp, pass.device, dx, up.weight->name);
  return dx;
}

}  // namespace troupe::engine::nn

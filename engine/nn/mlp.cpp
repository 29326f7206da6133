#include "engine/nn/mlp.h"

#include "engine/nn/sequence_parallel.h"

namespace troupe::engine::nn {

// Output of the activation, [T, F], from `g` (absent in the plain form) and `u`.
Tensor Mlp::activated(const Tensor& g, const Tensor& u, const ForwardContext& pass) const {
  Tensor h = pass.device.empty(u.shape());
  if (g)
    pass.device.gated(activation, g, u, h);
  else
    pass.device.activate(activation, u, h);
  return h;
}

Tensor Mlp::forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
  Tensor g, u;  // [T, F]
  if (gate.weight) {
    const auto both = forward_grouped({&gate, &up}, x, pass, saved);
    g = both[0];
    u = both[1];
  } else {
    u = up.forward(x, pass, saved);
  }
  const Tensor h = activated(g, u, pass);
  const std::size_t mark = saved.mark();
  Tensor y = down.forward(h, pass, saved);
  if (g) saved.push(g);
  saved.push(u);
  if (pass.recomputed.has(Recompute::activation)) saved.forget(mark, h);
  return y;
}

Tensor Mlp::backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const {
  const std::int64_t rows = all_rows(pass, dy);
  Tensor u = saved.pop(), g = gate.weight ? saved.pop() : Tensor();
  Tensor dh = pass.device.empty({rows, down.weight->value.shape()[1]});
  // g and u become their gradients in place: their values are no longer needed.
  bool done = false;
  if (pass.recomputed.has(Recompute::activation) && g && !down.lora) {
    // down pops h after it has computed dh: one pass recomputes h in the memory of dh and computes
    // the gradients that follow from dh.
    saved.restore_when_popped([&] {
      pass.device.gated_backward(activation, g, u, dh, g, u, &dh);
      done = true;
      return dh;
    });
  } else if (pass.recomputed.has(Recompute::activation)) {
    saved.restore([&] { return activated(g, u, pass); });
  }
  down.backward(dy, pass, saved, dh, false);
  if (g && !done) pass.device.gated_backward(activation, g, u, dh, g, u, nullptr);
  if (!g) {
    pass.device.activate_backward(activation, u, dh, dh);
    u = dh;
  }
  dh = Tensor();
  Tensor dx = pass.device.empty({rows, up.weight->value.shape()[1]});
  if (g)
    backward_grouped({{up, u}, {gate, g}}, pass, saved, dx);
  else
    up.backward(u, pass, saved, dx, false);
  return sum_rows(pass, down.tp, dx, up.weight->name);
}

}  // namespace troupe::engine::nn

#include "engine/nn/mixture.h"

#include <memory>
#include <utility>

namespace troupe::engine::nn {
namespace {

// Routing is discrete: rounded logits would choose other experts.
ForwardContext in_f32(const ForwardContext& pass) {
  ForwardContext exact = pass;
  exact.precision = ops::Precision::f32;
  exact.packed = false;
  return exact;
}

void push(const ops::Routes& routes, Saved& saved) {
  for (const Tensor& part :
       {routes.weights, routes.experts, routes.places, routes.tokens, routes.offsets})
    saved.push(part);
}

ops::Routes pop_routes(Saved& saved) {
  ops::Routes routes;
  for (Tensor* part :
       {&routes.offsets, &routes.tokens, &routes.places, &routes.experts, &routes.weights})
    *part = saved.pop();
  return routes;
}

}  // namespace

Tensor ExpertProjection::forward(const Tensor& x, const ops::Routes& routes,
                                 const ForwardContext& pass, Saved& saved) const {
  Tensor y = pass.device.empty({x.shape()[0], outputs()});
  std::vector<Tensor> weights;
  weights.reserve(experts_.size());
  ops::Gemm how;
  for (const Parameter* expert : experts_) {
    const ops::GemmCall call = expert->linear_call(pass.device, x, pass.precision, pass.packed, y);
    weights.push_back(call.b);
    how = call.how;
  }
  pass.device.ragged_gemm(routes, x, weights, y, how);
  if (lora) lora.forward(x, routes, pass, saved, y);
  return y;
}

void ExpertProjection::backward(const Tensor& dy, const Tensor& x, const ops::Routes& routes,
                                const ForwardContext& pass, Saved& saved, Tensor& dx,
                                bool accumulate) const {
  std::vector<Tensor> weights, sums;
  for (const Parameter* expert : experts_) weights.push_back(expert->f32(pass.device));
  pass.device.ragged_gemm(routes, dy, weights, dx,
                          {.accumulate = accumulate, .precision = pass.precision});
  if (lora) lora.backward(dy, x, routes, pass, saved, dx);
  if (!trains()) return;
  const auto accumulates = std::make_unique<bool[]>(experts_.size());
  std::vector<GradientSum> gradients;
  gradients.reserve(experts_.size());
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    accumulates[e] = experts_[e]->next_gemm_accumulates();
    gradients.emplace_back(pass.device, experts_[e]->grad, accumulates[e]);
    sums.push_back(gradients.back().f32());
  }
  pass.device.ragged_gradients(routes, dy, x, {sums, {accumulates.get(), experts_.size()}},
                               pass.precision);
  for (GradientSum& gradient : gradients) gradient.finish();
}

ops::Routes Mixture::empty_routes(ops::Device& device, std::int64_t tokens) const {
  const Shape each{tokens, how.chosen};
  return {.weights = device.empty(each),
          .experts = device.empty(each, DType::i32),
          .places = device.empty(each, DType::i32),
          .tokens = device.empty(Shape{tokens * how.chosen}, DType::i32),
          .offsets = device.empty(Shape{how.experts + 1}, DType::i32)};
}

bool Mixture::keeps_activated(const ForwardContext& pass) const {
  return down.needs_input() && !pass.recomputed.has(Recompute::activation);
}

void Mixture::push_inner(const Inner& inner, const ForwardContext& pass, Saved& saved) const {
  if (needs_rows()) saved.push(inner.rows);
  if (keeps_activated(pass)) saved.push(inner.activated);
  saved.push(inner.gate);
  saved.push(inner.up);
}

Mixture::Inner Mixture::pop_inner(const ForwardContext& pass, Saved& saved) const {
  Inner inner;
  inner.up = saved.pop();
  inner.gate = saved.pop();
  if (keeps_activated(pass)) inner.activated = saved.pop();
  if (needs_rows()) inner.rows = saved.pop();
  return inner;
}

std::pair<Tensor, Tensor> Mixture::projected(const Tensor& rows, const ops::Routes& routes,
                                             const ForwardContext& pass, Saved& saved) const {
  Tensor g = gate.forward(rows, routes, pass, saved), u = up.forward(rows, routes, pass, saved);
  if (gate_up) {
    Tensor both = pass.device.empty({rows.shape()[0], gate_up.outputs()});
    gate_up.forward(rows, routes, pass, saved, both, true);
    add_halves(both, pass, g, u);
  }
  return {g, u};
}

Tensor Mixture::forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
  ops::Device& device = pass.device;
  const std::int64_t tokens = x.shape()[0], width = x.shape()[1];
  const Tensor shared_output = shared ? shared->forward(x, pass, saved) : Tensor();
  const Tensor gate_logits = shared_gate ? shared_gate->forward(x, in_f32(pass), saved) : Tensor();
  const Tensor logits = router.forward(x, in_f32(pass), saved);
  ops::Routes routes = empty_routes(device, tokens);
  device.route(how, logits, choice_bias ? choice_bias->f32(device) : Tensor(), routes);
  if (balance) balance->routed(device, how, logits, pass.layout.offsets, layer, routes);
  Tensor rows = device.empty({tokens * how.chosen, width});
  device.permute(x, routes, rows);
  const auto [g, u] = projected(rows, routes, pass, saved);
  Tensor h = device.empty(u.shape());
  device.gated(activation, g, u, h);
  const Tensor outputs = down.forward(h, routes, pass, saved);
  Tensor y = device.empty(x.shape());
  const bool adds_shared = shared && (tp == nullptr || tp->rank() == 0);
  device.combine({.routes = routes,
                  .outputs = outputs,
                  .shared = adds_shared ? &shared_output : nullptr,
                  .gate = adds_shared && shared_gate ? &gate_logits : nullptr},
                 y);
  if (tp != nullptr) tp->all_reduce(y, "the outputs of a mixture of experts");
  saved.push(logits);
  if (shared_gate) {
    saved.push(shared_output);
    saved.push(gate_logits);
  }
  push_inner({u, g, h, rows}, pass, saved);
  saved.push(outputs);
  push(routes, saved);
  return y;
}

// Gradient of the permuted rows [M, D], from that of the experts' outputs. Values of the activation
// become their gradients in place.
Tensor Mixture::experts_backward(const Tensor& doutputs, const Inner& inner,
                                 const ops::Routes& routes, const ForwardContext& pass,
                                 Saved& saved) const {
  Tensor u = inner.up, g = inner.gate, h = inner.activated;
  if (down.needs_input() && !h) {
    h = pass.device.empty(u.shape());
    pass.device.gated(activation, g, u, h);
  }
  Tensor dh = pass.device.empty(u.shape()),
         drows = pass.device.empty({u.shape()[0], gate.inputs()});
  down.backward(doutputs, h, routes, pass, saved, dh, false);
  pass.device.gated_backward(activation, g, u, dh, g, u, nullptr);
  if (gate_up) {
    pass.device.fill(drows, 0);
    gate_up.backward(join_halves(g, u, pass), inner.rows, routes, pass, saved, drows);
  }
  up.backward(u, inner.rows, routes, pass, saved, drows, bool{gate_up});
  gate.backward(g, inner.rows, routes, pass, saved, drows, true);
  return drows;
}

Tensor Mixture::backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const {
  ops::Device& device = pass.device;
  const ops::Routes routes = pop_routes(saved);
  const Tensor outputs = saved.pop();
  Tensor doutputs = device.empty(outputs.shape()), dweights = device.empty(routes.weights.shape());
  const Inner inner = pop_inner(pass, saved);
  const Tensor gate_logits = shared_gate ? saved.pop() : Tensor(),
               shared_output = shared_gate ? saved.pop() : Tensor(), logits = saved.pop();
  Tensor dshared = dy, dgate;
  if (shared_gate) {
    dshared = device.empty(dy.shape());
    dgate = device.empty(gate_logits.shape());
  }
  device.combine_backward({.routes = routes,
                           .outputs = outputs,
                           .shared = shared_gate ? &shared_output : nullptr,
                           .gate = shared_gate ? &gate_logits : nullptr},
                          dy,
                          {.outputs = doutputs,
                           .weights = dweights,
                           .shared = shared_gate ? &dshared : nullptr,
                           .gate = shared_gate ? &dgate : nullptr});
  if (tp != nullptr) tp->all_reduce(dweights, "gradients of the weights of experts");
  const Tensor drows = experts_backward(doutputs, inner, routes, pass, saved);
  Tensor dx = device.empty(dy.shape()), dlogits = device.empty(logits.shape());
  device.permute_backward(drows, routes, dx);
  if (tp != nullptr) tp->all_reduce(dx, "gradients of the inputs of a mixture of experts");
  device.route_backward(how, logits, routes, dweights, dlogits);
  if (balance) balance->backward(device, how, logits, routes, pass.layout.offsets, layer, dlogits);
  router.backward(dlogits, in_f32(pass), saved, dx, true);
  if (shared_gate) shared_gate->backward(dgate, in_f32(pass), saved, dx, true);
  if (shared) device.add(dx, shared->backward(dshared, pass, saved), dx);
  return dx;
}

}  // namespace troupe::engine::nn

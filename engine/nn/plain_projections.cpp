#include "engine/nn/plain_projections.h"

#include <vector>

namespace troupe::engine::nn {
namespace {

// Views x [rows, heads * K] as the rows that `norm` normalizes: [rows * heads, K] where it is over
// each head.
Tensor rows_of(const Norm& norm, const Tensor& x) {
  if (!norm) return x;
  const std::int64_t width = norm.gain->value.count();
  return x.view({x.count() / width, width});
}

}  // namespace

Tensor normed_heads(const Norm& norm, const Tensor& x, const ForwardContext& pass, Saved& saved) {
  return norm.forward(rows_of(norm, x), pass, saved).view(x.shape());
}

Tensor normed_heads_backward(const Norm& norm, const Tensor& dy, const ForwardContext& pass,
                             Saved& saved) {
  return norm.backward(rows_of(norm, dy), pass, saved).view(dy.shape());
}

HeadTensors PlainProjections::forward(const Tensor& x, const ForwardContext& pass,
                                      Saved& saved) const {
  const std::vector<Tensor> projected = forward_grouped({&q, &k, &v}, x, pass, saved);
  const Tensor queries = normed_heads(q_norm, projected[0], pass, saved);
  const Tensor keys = normed_heads(k_norm, projected[1], pass, saved);
  return {queries, keys, projected[2]};
}

Tensor PlainProjections::backward(const HeadTensors& grads, const ForwardContext& pass,
                                  Saved& saved) const {
  const auto& [dq, dk, dv] = grads;
  Tensor dx = pass.device.empty({dq.shape()[0], q.weight->value.shape()[1]});
  const Tensor dkeys = normed_heads_backward(k_norm, dk, pass, saved);
  const Tensor dqueries = normed_heads_backward(q_norm, dq, pass, saved);
  backward_grouped({{v, dv}, {k, dkeys}, {q, dqueries}}, pass, saved, dx);
  return dx;
}

}  // namespace troupe::engine::nn

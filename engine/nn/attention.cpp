#include "engine/nn/attention.h"

#include "engine/nn/shared_rows.h"
#include "engine/nn/tensor_parallel.h"

namespace troupe::engine::nn {
namespace {

// The row of the cache for each row of the batch.
std::vector<std::int32_t> cache_rows(const ForwardContext& pass) {
  std::vector<std::int32_t> rows;
  rows.reserve(pass.layout.positions.size());
  const int size = pass.cache->page_size;
  for (std::size_t n = 0; n + 1 < pass.layout.offsets.size(); ++n) {
    for (auto t = pass.layout.offsets[n]; t < pass.layout.offsets[n + 1]; ++t) {
      const auto position = pass.layout.positions[static_cast<std::size_t>(t)];
      rows.push_back(pass.pages[n][static_cast<std::size_t>(position / size)] * size +
                     position % size);
    }
  }
  return rows;
}

ops::KeyValues store(const Tensor& k, const Tensor& v, const ForwardContext& pass, int layer) {
  if (!pass.cache) return {k, v, 0, {}};
  const auto rows = cache_rows(pass);
  Tensor& cached_k = pass.cache->k[static_cast<std::size_t>(layer)];
  Tensor& cached_v = pass.cache->v[static_cast<std::size_t>(layer)];
  pass.device.scatter_rows(k, rows, cached_k);
  pass.device.scatter_rows(v, rows, cached_v);
  return {cached_k, cached_v, pass.cache->page_size, pass.pages};
}

}  // namespace

Tensor Attention::rows_of(const Norm& norm, const Tensor& x) const {
  if (!norm) return x;
  const std::int64_t width = norm.gain->value.count();
  return x.view({x.count() / width, width});
}

void Attention::apply_rotary(Tensor& queries, Tensor& keys, const ForwardContext& pass,
                             bool inverse) const {
  if (rotary == nullptr) return;
  rotary->apply(queries, pass, shape.heads, inverse);
  rotary->apply(keys, pass, shape.kv_heads, inverse);
}

Tensor Attention::forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
  ops::Device& device = pass.device;
  const std::vector<Tensor> projected = forward_grouped({&q, &k, &v}, x, pass, saved);
  Tensor queries = projected[0], keys = projected[1];     // [U, H*K], [U, G*K]
  const Tensor values = expand_rows(pass, projected[2]);  // [T, G*K]
  queries = expand_rows(
      pass, q_norm.forward(rows_of(q_norm, queries), pass, saved).view(queries.shape()));
  keys = expand_rows(pass, k_norm.forward(rows_of(k_norm, keys), pass, saved).view(keys.shape()));
  apply_rotary(queries, keys, pass, false);

  Tensor out = device.empty(queries.shape());
  Tensor lse =
      saved.keeps() ? device.empty({pass.layout.rows(), shape.heads}) : Tensor();  // [T, H]
  device.attention({queries, store(keys, values, pass, layer), pass.layout, shape, pass.precision},
                   out, saved.keeps() ? &lse : nullptr);
  const std::size_t mark = saved.mark();
  const Tensor computed = unique_rows(pass, out);
  Tensor y = o.forward(computed, pass, saved);
  saved.push(queries);
  saved.push(keys);
  saved.push(values);
  if (pass.recomputed.attention) {
    saved.forget(mark, computed);
  } else {
    saved.push(out);
    saved.push(lse);
  }
  return y;
}

Tensor Attention::backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const {
  ops::Device& device = pass.device;
  const std::int64_t rows = dy.shape()[0];
  const bool recompute = pass.recomputed.attention;
  Tensor lse = recompute ? device.empty({pass.layout.rows(), shape.heads}) : saved.pop();
  Tensor out = recompute ? Tensor() : saved.pop();
  const Tensor values = saved.pop(), keys = saved.pop(), queries = saved.pop();
  if (recompute) {
    out = device.empty(queries.shape());
    device.attention({queries, {keys, values, 0, {}}, pass.layout, shape, pass.precision}, out,
                     &lse);
    saved.restore([&] { return unique_rows(pass, out); });
  }
  Tensor dout = device.empty({rows, o.weight->value.shape()[1]});
  o.backward(dy, pass, saved, dout, false);
  dout = unique_rows_backward(pass, dout);

  Tensor dq = device.empty(queries.shape()), dk = device.empty(keys.shape()),
         dv = device.empty(values.shape());
  device.attention_backward({queries, {keys, values, 0, {}}, pass.layout, shape, pass.precision},
                            {out, lse, dout, dq, dk, dv});
  apply_rotary(dq, dk, pass, true);
  dq = unique_rows(pass, dq);  // the other rows have no gradient: their output is not read
  dk = expand_rows_backward(pass, dk);
  dv = expand_rows_backward(pass, dv);
  dk = k_norm.backward(rows_of(k_norm, dk), pass, saved).view(dk.shape());
  dq = q_norm.backward(rows_of(q_norm, dq), pass, saved).view(dq.shape());
  Tensor dx = device.empty({rows, q.weight->value.shape()[1]});
  backward_grouped({{v, dv}, {k, dk}, {q, dq}}, pass, saved, dx);
  all_reduce(o.tp, device, dx, q.weight->name);
  return dx;
}

}  // namespace troupe::engine::nn

#include "engine/nn/attention.h"

#include "engine/nn/tp.h"

namespace troupe::engine::nn {
namespace {

// The cache row of every row of the batch.
std::vector<std::int32_t> cache_rows(const Pass& pass) {
  std::vector<std::int32_t> rows;
  rows.reserve(pass.layout.positions.size());
  const int size = pass.cache->page_size;
  for (std::size_t n = 0; n + 1 < pass.layout.offsets.size(); ++n) {
    for (auto t = pass.layout.offsets[n]; t < pass.layout.offsets[n + 1]; ++t) {
      const auto position = pass.layout.positions[static_cast<std::size_t>(t)];
      rows.push_back(pass.pages[n][static_cast<std::size_t>(position / size)] * size + position % size);
    }
  }
  return rows;
}

ops::KeyValues store(const Tensor& k, const Tensor& v, const Pass& pass, int layer) {
  if (!pass.cache) return {k, v, 0, {}};
  const auto rows = cache_rows(pass);
  Tensor& cached_k = pass.cache->k[static_cast<std::size_t>(layer)];
  Tensor& cached_v = pass.cache->v[static_cast<std::size_t>(layer)];
  pass.device.scatter_rows(k, rows, cached_k);
  pass.device.scatter_rows(v, rows, cached_v);
  return {cached_k, cached_v, pass.cache->page_size, pass.pages};
}

}  // namespace

template <class F>
Tensor Attention::over_heads(const Tensor& x, const F& f) const {
  return f(x.view({x.count() / shape.head_size, shape.head_size})).view(x.shape());
}

Tensor Attention::forward(const Tensor& x, const Pass& pass, Saved& saved) const {
  ops::Device& device = pass.device;
  Tensor queries = q.forward(x, pass, saved);  // [T, H*K]
  Tensor keys = k.forward(x, pass, saved);     // [T, G*K]
  Tensor values = v.forward(x, pass, saved);   // [T, G*K]
  if (q_norm.gain) queries = over_heads(queries, [&](const Tensor& heads) { return q_norm.forward(heads, pass, saved); });
  if (k_norm.gain) keys = over_heads(keys, [&](const Tensor& heads) { return k_norm.forward(heads, pass, saved); });
  rotary->turn(queries, pass, shape.heads, false);
  rotary->turn(keys, pass, shape.kv_heads, false);

  Tensor out = device.empty(queries.shape());
  Tensor lse = saved.keeps() ? device.empty({x.shape()[0], shape.heads}) : Tensor();  // [T, H]
  device.attention(queries, store(keys, values, pass, layer), pass.layout, shape, out, saved.keeps() ? &lse : nullptr);
  saved.push(queries);
  saved.push(keys);
  saved.push(values);
  saved.push(out);
  saved.push(lse);
  return o.forward(out, pass, saved);
}

Tensor Attention::backward(const Tensor& dy, const Pass& pass, Saved& saved) const {
  ops::Device& device = pass.device;
  const std::int64_t rows = dy.shape()[0];
  Tensor dout = device.empty({rows, o.weight->value.shape()[1]});
  o.backward(dy, pass, saved, dout, false);
  const Tensor lse = saved.pop(), out = saved.pop(), values = saved.pop(), keys = saved.pop(), queries = saved.pop();

  Tensor dq = device.empty(queries.shape()), dk = device.empty(keys.shape()), dv = device.empty(values.shape());
  device.attention_backward(queries, {keys, values, 0, {}}, pass.layout, shape, out, lse, dout, dq, dk, dv);
  rotary->turn(dq, pass, shape.heads, true);
  rotary->turn(dk, pass, shape.kv_heads, true);

  if (k_norm.gain) dk = over_heads(dk, [&](const Tensor& heads) { return k_norm.backward(heads, pass, saved); });
  if (q_norm.gain) dq = over_heads(dq, [&](const Tensor& heads) { return q_norm.backward(heads, pass, saved); });
  Tensor dx = device.empty({rows, q.weight->value.shape()[1]});
  v.backward(dv, pass, saved, dx, false);
  k.backward(dk, pass, saved, dx, true);
  q.backward(dq, pass, saved, dx, true);
  sum_over(o.tp, device, dx, q.weight->name);
  return dx;
}

}  // namespace troupe::engine::nn

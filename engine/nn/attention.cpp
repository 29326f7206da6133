#include "engine/nn/attention.h"

#include "engine/nn/shared_rows.h"
#include "engine/nn/tensor_parallel.h"

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
      rows.push_back(pass.pages[n][static_cast<std::size_t>(position / size)] * size +
                     position % size);
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

Tensor Attention::rows_of(const Norm& norm, const Tensor& x) const {
  if (!norm) return x;
  const std::int64_t width = norm.gain->value.count();
  return x.view({x.count() / width, width});
}

void Attention::turn(Tensor& queries, Tensor& keys, const Pass& pass, bool back) const {
  if (rotary == nullptr) return;
  rotary->turn(queries, pass, shape.heads, back);
  rotary->turn(keys, pass, shape.kv_heads, back);
}

Tensor Attention::forward(const Tensor& x, const Pass& pass, Saved& saved) const {
  ops::Device& device = pass.device;
  const std::vector<Tensor> computed_once = forward_together({&q, &k, &v}, x, pass, saved);
  Tensor queries = computed_once[0], keys = computed_once[1];  // [U, H*K], [U, G*K]
  const Tensor values = all_rows(pass, computed_once[2]);      // [T, G*K]
  queries =
      all_rows(pass, q_norm.forward(rows_of(q_norm, queries), pass, saved).view(queries.shape()));
  keys = all_rows(pass, k_norm.forward(rows_of(k_norm, keys), pass, saved).view(keys.shape()));
  turn(queries, keys, pass, false);

  Tensor out = device.empty(queries.shape());
  Tensor lse =
      saved.keeps() ? device.empty({pass.layout.rows(), shape.heads}) : Tensor();  // [T, H]
  device.attention({queries, store(keys, values, pass, layer), pass.layout, shape, pass.precision},
                   out, saved.keeps() ? &lse : nullptr);
  const std::size_t mark = saved.mark();
  const Tensor computed = computed_rows(pass, out);
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

Tensor Attention::backward(const Tensor& dy, const Pass& pass, Saved& saved) const {
  ops::Device& device = pass.device;
  const std::int64_t rows = dy.shape()[0];
  const bool again = pass.recomputed.attention;
  Tensor lse = again ? device.empty({pass.layout.rows(), shape.heads}) : saved.pop(),
         out = again ? Tensor() : saved.pop();
  const Tensor values = saved.pop(), keys = saved.pop(), queries = saved.pop();
  if (again) {
    out = device.empty(queries.shape());
    device.attention({queries, {keys, values, 0, {}}, pass.layout, shape, pass.precision}, out,
                     &lse);
    saved.restore([&] { return computed_rows(pass, out); });
  }
  Tensor dout = device.empty({rows, o.weight->value.shape()[1]});
  o.backward(dy, pass, saved, dout, false);
  dout = computed_rows_backward(pass, dout);

  Tensor dq = device.empty(queries.shape()), dk = device.empty(keys.shape()),
         dv = device.empty(values.shape());
  device.attention_backward({queries, {keys, values, 0, {}}, pass.layout, shape, pass.precision},
                            {out, lse, dout, dq, dk, dv});
  turn(dq, dk, pass, true);
  dq = computed_rows(pass, dq);  // the others have none: nobody reads what they give
  dk = all_rows_backward(pass, dk), dv = all_rows_backward(pass, dv);
  dk = k_norm.backward(rows_of(k_norm, dk), pass, saved).view(dk.shape());
  dq = q_norm.backward(rows_of(q_norm, dq), pass, saved).view(dq.shape());
  Tensor dx = device.empty({rows, q.weight->value.shape()[1]});
  backward_together({{v, dv}, {k, dk}, {q, dq}}, pass, saved, dx);
  sum_over(o.tp, device, dx, q.weight->name);
  return dx;
}

}  // namespace troupe::engine::nn

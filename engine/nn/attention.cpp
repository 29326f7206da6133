#include "engine/nn/attention.h"

#include <optional>

#include "engine/nn/head_exchange.h"
#include "engine/nn/ring_attention.h"
#include "engine/nn/sequence_parallel.h"
#include "engine/nn/shared_rows.h"

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

// Attention of a pass whose rows may be divided. Without an exchange, functions return their
// argument.
class Exchange {
 public:
  Exchange(const ForwardContext& pass, const Attention& attention)
      : pass_(pass), shape_(attention.shape) {
    std::int64_t first_head = attention.first_head;
    if (pass.context != nullptr && pass.context->groups->heads) {
      exchange_.emplace(attention_exchange(*pass.context, attention.shape));
      shape_ = exchange_->shape;
      first_head += exchange_->first_head;
    }
    if (pass.dropout != nullptr && pass.dropout->attention > 0)
      dropout_ = {pass.dropout->attention, pass.dropout->attention_key, attention.number,
                  pass.dropout->attention_rows, first_head};
  }
  const ops::AttentionShape& shape() const { return shape_; }
  /// With `lse` for the backward pass, nullptr: it is not needed. No effect where this rank has no
  /// heads.
  void attend(const Tensor& q, const ops::KeyValues& kv, Tensor& out, Tensor* lse) const {
    if (shape_.heads == 0) return;
    if (in_ring()) return ring_attention(pass_, {q, kv.k, kv.v, shape_, dropout()}, out, lse);
    pass_.device.attention({q, kv, pass_.layout, shape_, pass_.precision, dropout()}, out, lse);
  }
  void attend_backward(const Tensor& q, const ops::KeyValues& kv,
                       const ops::AttentionBackward& with) const {
    if (shape_.heads == 0) return;
    if (in_ring()) return ring_attention_backward(pass_, {q, kv.k, kv.v, shape_, dropout()}, with);
    pass_.device.attention_backward({q, kv, pass_.layout, shape_, pass_.precision, dropout()},
                                    with);
  }
  /// Applies the rotary embedding, or its inverse, in place.
  void rotate(const RotaryTable* rotary, Tensor& queries, Tensor& keys, bool inverse) const {
    if (rotary == nullptr || shape_.heads == 0) return;
    const ForwardContext in_the_ring{
        .device = pass_.device,
        .layout = in_ring() ? pass_.context->ring_layout : pass_.layout,
        .lengths = in_ring() ? pass_.context->lengths : pass_.lengths};
    rotary->apply(queries, in_the_ring, shape_.heads, inverse);
    rotary->apply(keys, in_the_ring, shape_.kv_heads, inverse);
  }
  Tensor queries(const Tensor& x) const {
    return exchange_ ? exchange_->queries.to_heads(pass_.device, x, "the queries of a layer") : x;
  }
  Tensor keys(const Tensor& x) const {
    return exchange_ ? exchange_->keys.to_heads(pass_.device, x, "the keys of a layer") : x;
  }
  Tensor values(const Tensor& x) const {
    return exchange_ ? exchange_->keys.to_heads(pass_.device, x, "the values of a layer") : x;
  }
  Tensor outputs(const Tensor& x) const {
    return exchange_ ? exchange_->queries.to_rows(pass_.device, x, "the outputs of attention") : x;
  }
  Tensor doutputs(const Tensor& x) const {
    return exchange_ ? exchange_->queries.to_heads(pass_.device, x,
                                                   "the gradients of attention's outputs")
                     : x;
  }
  Tensor dqueries(const Tensor& x) const {
    return exchange_ ? exchange_->queries.to_rows(pass_.device, x, "the gradients of queries") : x;
  }
  Tensor dkeys(const Tensor& x) const {
    return exchange_ ? exchange_->keys.to_rows(pass_.device, x, "the gradients of keys") : x;
  }
  Tensor dvalues(const Tensor& x) const {
    return exchange_ ? exchange_->keys.to_rows(pass_.device, x, "the gradients of values") : x;
  }

 private:
  bool in_ring() const {
    return pass_.context != nullptr && pass_.context->groups->ring != nullptr;
  }

  const ops::AttentionDropout* dropout() const { return dropout_ ? &*dropout_ : nullptr; }

  const ForwardContext& pass_;
  ops::AttentionShape shape_;
  std::optional<ops::AttentionDropout> dropout_;
  std::optional<AttentionExchange> exchange_;
};

// The outputs of attention that the output projection reads.
Tensor outputs(const std::optional<LatentProjections>& latent, const Exchange& exchange,
               const ForwardContext& pass, const Tensor& out) {
  const Tensor own = exchange.outputs(unique_rows(pass, out));
  return latent ? latent->without_padding(pass, own) : own;
}

// Views x [rows, heads * K] as the rows that `norm` normalizes: [rows * heads, K] where it is over
// each head.
Tensor rows_of(const Norm& norm, const Tensor& x) {
  if (!norm) return x;
  const std::int64_t width = norm.gain->value.count();
  return x.view({x.count() / width, width});
}

}  // namespace

HeadTensors Attention::project(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
  if (latent) return latent->forward(x, pass, saved);
  const std::vector<Tensor> projected = forward_grouped({&q, &k, &v}, x, pass, saved);
  Tensor queries = projected[0], keys = projected[1];  // [U, H*K], [U, G*K]
  queries = q_norm.forward(rows_of(q_norm, queries), pass, saved).view(queries.shape());
  keys = k_norm.forward(rows_of(k_norm, keys), pass, saved).view(keys.shape());
  return {queries, keys, projected[2]};
}

Tensor Attention::project_backward(HeadTensors grads, const ForwardContext& pass,
                                   Saved& saved) const {
  auto& [dq, dk, dv] = grads;
  const std::int64_t width = latent ? latent->width() : q.weight->value.shape()[1];
  Tensor dx = pass.device.empty({dq.shape()[0], width});
  if (latent) {
    latent->backward(grads, pass, saved, dx);
    return dx;
  }
  dk = k_norm.backward(rows_of(k_norm, dk), pass, saved).view(dk.shape());
  dq = q_norm.backward(rows_of(q_norm, dq), pass, saved).view(dq.shape());
  backward_grouped({{v, dv}, {k, dk}, {q, dq}}, pass, saved, dx);
  return dx;
}

Tensor Attention::forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
  ops::Device& device = pass.device;
  auto [queries, keys, values] = project(x, pass, saved);
  const Exchange exchange(pass, *this);
  queries = expand_rows(pass, exchange.queries(queries));  // [T, H*K]
  keys = expand_rows(pass, exchange.keys(keys));           // [T, G*K]
  values = expand_rows(pass, exchange.values(values));     // [T, G*K]
  exchange.rotate(rotary, queries, keys, false);

  Tensor out = device.empty(queries.shape());
  Tensor lse = saved.keeps() ? device.empty({queries.shape()[0], exchange.shape().heads})
                             : Tensor();  // [T, H]
  exchange.attend(queries, store(keys, values, pass, layer), out, saved.keeps() ? &lse : nullptr);
  const std::size_t mark = saved.mark();
  const Tensor computed = outputs(latent, exchange, pass, out);
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
  const std::int64_t rows = all_rows(pass, dy);
  const bool recompute = pass.recomputed.attention;
  const Exchange exchange(pass, *this);
  Tensor lse = recompute ? Tensor() : saved.pop();
  Tensor out = recompute ? Tensor() : saved.pop();
  const Tensor values = saved.pop(), keys = saved.pop(), queries = saved.pop();
  if (recompute) {
    out = device.empty(queries.shape());
    lse = device.empty({queries.shape()[0], exchange.shape().heads});
    exchange.attend(queries, {keys, values, 0, {}}, out, &lse);
    saved.restore([&] { return outputs(latent, exchange, pass, out); });
  }
  Tensor dout = device.empty({rows, o.weight->value.shape()[1]});
  o.backward(dy, pass, saved, dout, false);
  if (latent) dout = latent->without_padding_backward(pass, dout);
  dout = unique_rows_backward(pass, exchange.doutputs(dout));

  Tensor dq = device.empty(queries.shape()), dk = device.empty(keys.shape()),
         dv = device.empty(values.shape());
  exchange.attend_backward(queries, {keys, values, 0, {}}, {out, lse, dout, dq, dk, dv});
  exchange.rotate(rotary, dq, dk, true);
  // Other rows have no gradient of queries: their output is not read.
  dq = exchange.dqueries(unique_rows(pass, dq));
  dk = exchange.dkeys(expand_rows_backward(pass, dk));
  dv = exchange.dvalues(expand_rows_backward(pass, dv));
  return sum_rows(pass, o.tp, project_backward({dq, dk, dv}, pass, saved), o.weight->name);
}

}  // namespace troupe::engine::nn

#include "engine/nn/attention.h"

#include <array>
#include <optional>
#include <string_view>

#include "engine/nn/head_exchange.h"
#include "engine/nn/ring_attention.h"
#include "engine/nn/sequence_parallel.h"
#include "engine/nn/shared_rows.h"

namespace troupe::engine::nn {
namespace {

ops::KeyValues store(const Tensor& k, const Tensor& v, const ForwardContext& pass, int layer) {
  if (!pass.cache) return {k, v};
  Tensor& cached_k = pass.cache->k[static_cast<std::size_t>(layer)];
  Tensor& cached_v = pass.cache->v[static_cast<std::size_t>(layer)];
  pass.device.scatter_rows(k, pass.layout.cache_rows, cached_k);
  pass.device.scatter_rows(v, pass.layout.cache_rows, cached_v);
  return {cached_k, cached_v};
}

// What an exchange moves: the operand, or its gradient in the opposite direction.
enum class Part : std::uint8_t { queries, keys, values, outputs };

// Attention of a pass whose rows may be divided. Without an exchange, to_heads() and to_rows()
// return their argument.
class Exchange {
 public:
  template <class Projections>
  Exchange(const ForwardContext& pass, const Attention<Projections>& attention)
      : pass_(pass), shape_(attention.shape) {
    std::int64_t first_head = attention.first_head;
    if (pass.context != nullptr && pass.context->groups->heads) {
      exchange_.emplace(attention_exchange(*pass.context, attention.shape));
      shape_ = exchange_->shape;
      first_head += exchange_->first_head;
    }
    if (pass.dropout != nullptr && pass.dropout->attention > 0)
      dropout_.emplace(pass.dropout->attention, pass.dropout->attention_key, attention.number,
                       pass.dropout->attention_rows, first_head);
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
  /// Own rows of all heads -> all rows of own heads: of the operands, and the gradient of
  /// `outputs`.
  Tensor to_heads(const Tensor& x, Part part) const {
    static constexpr std::array<std::string_view, 4> names{
        "the queries of a layer", "the keys of a layer", "the values of a layer",
        "the gradients of attention's outputs"};
    return exchange_ ? of(part).to_heads(pass_.device, x, names[static_cast<std::size_t>(part)])
                     : x;
  }
  /// All rows of own heads -> own rows of all heads: of `outputs`, and the gradients of operands.
  Tensor to_rows(const Tensor& x, Part part) const {
    static constexpr std::array<std::string_view, 4> names{
        "the gradients of queries", "the gradients of keys", "the gradients of values",
        "the outputs of attention"};
    return exchange_ ? of(part).to_rows(pass_.device, x, names[static_cast<std::size_t>(part)]) : x;
  }

 private:
  bool in_ring() const {
    return pass_.context != nullptr && pass_.context->groups->ring != nullptr;
  }

  const HeadExchange& of(Part part) const {
    return part == Part::keys || part == Part::values ? exchange_->keys : exchange_->queries;
  }
  const ops::AttentionDropout* dropout() const { return dropout_ ? &*dropout_ : nullptr; }

  const ForwardContext& pass_;
  ops::AttentionShape shape_;
  std::optional<ops::AttentionDropout> dropout_;
  std::optional<AttentionExchange> exchange_;
};

}  // namespace

template <class Projections>
Tensor Attention<Projections>::forward(const Tensor& x, const ForwardContext& pass,
                                       Saved& saved) const {
  ops::Device& device = pass.device;
  auto [queries, keys, values] = projections.forward(x, pass, saved);
  const Exchange exchange(pass, *this);
  queries = expand_rows(pass, exchange.to_heads(queries, Part::queries));  // [T, H*K]
  keys = expand_rows(pass, exchange.to_heads(keys, Part::keys));           // [T, G*K]
  values = expand_rows(pass, exchange.to_heads(values, Part::values));     // [T, G*K]
  exchange.rotate(rotary, queries, keys, false);
  queries = normed_heads(q_norm, queries, pass, saved);
  keys = normed_heads(k_norm, keys, pass, saved);

  Tensor out = device.empty(queries.shape());
  Tensor lse = saved.keeps() ? device.empty({queries.shape()[0], exchange.shape().heads})
                             : Tensor();  // [T, H]
  exchange.attend(queries, store(keys, values, pass, layer), out, saved.keeps() ? &lse : nullptr);
  const std::size_t mark = saved.mark();
  const Tensor computed =
      projections.outputs(pass, exchange.to_rows(unique_rows(pass, out), Part::outputs));
  Tensor y = o.forward(computed, pass, saved);
  saved.push(queries);
  saved.push(keys);
  saved.push(values);
  if (pass.recomputed.has(Recompute::attention)) {
    saved.forget(mark, computed);
  } else {
    saved.push(out);
    saved.push(lse);
  }
  return y;
}

template <class Projections>
Tensor Attention<Projections>::backward(const Tensor& dy, const ForwardContext& pass,
                                        Saved& saved) const {
  ops::Device& device = pass.device;
  const std::int64_t rows = all_rows(pass, dy);
  const bool recompute = pass.recomputed.has(Recompute::attention);
  const Exchange exchange(pass, *this);
  Tensor lse = recompute ? Tensor() : saved.pop();
  Tensor out = recompute ? Tensor() : saved.pop();
  const Tensor values = saved.pop(), keys = saved.pop(), queries = saved.pop();
  if (recompute) {
    out = device.empty(queries.shape());
    lse = device.empty({queries.shape()[0], exchange.shape().heads});
    exchange.attend(queries, {keys, values}, out, &lse);
    saved.restore([&] {
      return projections.outputs(pass, exchange.to_rows(unique_rows(pass, out), Part::outputs));
    });
  }
  Tensor dout = device.empty({rows, o.weight->value.shape()[1]});
  o.backward(dy, pass, saved, dout, false);
  dout = projections.outputs_backward(pass, dout);
  dout = unique_rows_backward(pass, exchange.to_heads(dout, Part::outputs));

  Tensor dq = device.empty(queries.shape()), dk = device.empty(keys.shape()),
         dv = device.empty(values.shape());
  exchange.attend_backward(queries, {keys, values}, {out, lse, dout, dq, dk, dv});
  dk = normed_heads_backward(k_norm, dk, pass, saved);
  dq = normed_heads_backward(q_norm, dq, pass, saved);
  exchange.rotate(rotary, dq, dk, true);
  // Other rows have no gradient of queries: their output is not read.
  dq = exchange.to_rows(unique_rows(pass, dq), Part::queries);
  dk = exchange.to_rows(expand_rows_backward(pass, dk), Part::keys);
  dv = exchange.to_rows(expand_rows_backward(pass, dv), Part::values);
  return sum_rows(pass, o.tp, projections.backward({dq, dk, dv}, pass, saved), o.weight->name);
}

template struct Attention<PlainProjections>;
template struct Attention<LatentProjections>;

}  // namespace troupe::engine::nn

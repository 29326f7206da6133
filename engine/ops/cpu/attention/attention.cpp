#include "engine/ops/cpu/attention/attention.h"

#include <algorithm>

#include "engine/ops/cpu/attention/decode.h"
#include "engine/ops/cpu/attention/tiled_attention.h"

namespace troupe::engine::ops::cpu {
namespace {

/// Returns whether no sequence has more than one row.
bool is_decoding_step(const Layout& layout) {
  return std::adjacent_find(layout.offsets.begin(), layout.offsets.end(), [](auto begin, auto end) {
           return end - begin > 1;
         }) == layout.offsets.end();
}

}  // namespace

void attention(const Context& context, const AttentionInputs& in, Tensor& out, Tensor* lse) {
  float* to = mutable_data(out);
  float* to_lse = lse == nullptr ? nullptr : mutable_data(*lse);
  if (in.precision == Precision::f32 && in.kv.blocks.empty() && is_decoding_step(in.layout))
    return DecodeAttention(context, in).forward(to, to_lse);
  TiledAttention(context, in).forward(to, to_lse);
}

void attention_backward(const Context& context, const AttentionInputs& in,
                        const AttentionBackward& with) {
  TiledAttention(context, in).backward(with);
}

}  // namespace troupe::engine::ops::cpu

#include "engine/ops/cpu/fast_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::engine::ops {

void AttentionPass::cap_scores(float* scores, Keys keys) const {
  if (shape_.softcap != 0) return kernels_.cap(scores, keys.count(), shape_.scale, shape_.softcap);
  if (!shape_.slopes.empty()) kernels_.scale(scores, shape_.scale, keys.count());
}

void AttentionPass::tilt_scores(float* scores, std::int64_t pair, Keys keys) const {
  if (shape_.slopes.empty()) return;
  const float slope = shape_.slopes[static_cast<std::size_t>(pair % shape_.heads)];
  kernels_.tilt(scores, keys.count(), slope, keys.first + 1 - keys.end);
}

void AttentionPass::weigh(const Block& block, const Group& group, const Memory& memory, float* lse) const {
  for (std::int64_t i = 0; i < group.rows; ++i) {
    const std::int64_t pair = group.row_of(i);
    const Keys keys = keys_of(pair);
    float *row = memory.scores + i * block.pitch(), *own = row + (keys.first - group.keys.first);
    cap_scores(own, keys);
    tilt_scores(own, pair, keys);
    const SoftmaxSums sums = kernels_.softmax_in_place(own, keys.count(), factor());
    std::fill(row, own, 0.0F);
    std::fill(own + keys.count(), row + group.keys.count(), 0.0F);
    memory.inverse[i] = static_cast<float>(1 / sums.sum);
    if (lse != nullptr) lse[pair] = static_cast<float>(double{sums.largest} + std::log(sums.sum));
  }
}

void AttentionPass::finish(const Group& group, const Memory& memory, float* out) const {
  const std::int64_t size = shape_.head_size;
  for (std::int64_t i = 0; i < group.rows; ++i) kernels_.scale(out + group.row_of(i) * size, memory.inverse[i], size);
}

void AttentionPass::forward_block(const Block& block, int worker, float* out, float* lse) const {
  const Memory memory = memory_for(block, worker, false);
  if (block.rows == 1) {
    const Group heads = heads_of(block);
    scores_of_one_row(block, heads, memory);
    weigh(block, heads, memory, lse);
    values_of_one_row(block, heads, memory, out);
    return finish(heads, memory, out);
  }
  pack_by_key(block, k_, memory.keys);
  pack_by_column(block, v_, memory.values);
  for_each_group(block, [&](const Group& group) {
    against_keys(block, group, q_, memory.keys, memory, memory.scores);
    fetch_next(group, q_);
    weigh(block, group, memory, lse);
    over_keys(block, group, memory.scores, memory.values, out);
    finish(group, memory, out);
  });
}

void AttentionPass::forward(float* out, float* lse) {
  const std::vector<Block> all = blocks_for_threads();
  std::int64_t work = 0;
  for (const Block& block : all) work += block.rows * block.keys.count() * shape_.head_size * 2 * share();
  const std::int64_t pieces = work < 100'000 ? 1 : static_cast<std::int64_t>(all.size());
  device_.pool_.run(pieces, [&](std::int64_t piece, int worker) {
    if (pieces > 1) return forward_block(all[static_cast<std::size_t>(piece)], worker, out, lse);
    for (const Block& block : all) forward_block(block, worker, out, lse);
  });
}

void AttentionPass::backward_row(const Group& group, std::int64_t pair, float dot, float lse, float* p, float* ds) const {
  const Keys keys = keys_of(pair);
  const std::int64_t before = keys.first - group.keys.first, seen = keys.count();
  cap_scores(p + before, keys);
  if (shape_.softcap != 0) kernels_.cap_backward(p + before, ds + before, seen, shape_.softcap, std::exchange(dot, 0.0F));
  tilt_scores(p + before, pair, keys);
  kernels_.attention_weights(p + before, seen, factor(), lse);
  kernels_.attention_dscores(p + before, ds + before, seen, dot, shape_.scale);
  for (float* row : {p, ds}) {
    std::fill(row, row + before, 0.0F);
    std::fill(row + before + seen, row + group.keys.count(), 0.0F);
  }
}

void AttentionPass::backward_group(const Block& block, const Group& group, const Memory& memory, const AttentionUpstream& up,
                                   const AttentionSlopes& to) const {
  const std::int64_t size = shape_.head_size;
  against_keys(block, group, q_, memory.keys, memory, memory.scores);
  against_keys(block, group, up.dout, memory.values, memory, memory.dscores);
  for (const float* of : {q_, up.dout, up.out}) fetch_next(group, of);
  for (std::int64_t i = 0; i < group.rows; ++i) {
    const std::int64_t pair = group.row_of(i), at = i * block.pitch();
    const float row_dot = kernels_.dot(up.out + pair * size, up.dout + pair * size, size);
    backward_row(group, pair, row_dot, up.lse[pair], memory.scores + at, memory.dscores + at);
  }
  over_rows(block, group, memory.scores, up.dout, memory, to.dv);
  over_rows(block, group, memory.dscores, q_, memory, to.dk);
  over_keys(block, group, memory.dscores, memory.keys_by_column, to.dq);
}

void AttentionPass::backward(const AttentionUpstream& up, const AttentionSlopes& to) {
  // dk and dv of one sequence and head are one chain over its heads and rows, so one thread takes them all, in order.
  const std::vector<Block> all = blocks(layout_.rows());
  device_.pool_.run(static_cast<std::int64_t>(all.size()), [&](std::int64_t i, int worker) {
    const Block& block = all[static_cast<std::size_t>(i)];
    const Memory memory = memory_for(block, worker, true);
    pack_by_key(block, k_, memory.keys);
    pack_by_key(block, v_, memory.values);
    pack_by_column(block, k_, memory.keys_by_column);
    for_each_group(block, [&](const Group& group) { backward_group(block, group, memory, up, to); });
  });
}

void FastDevice::attention(const Tensor& q, const KeyValues& kv, const Layout& layout, const AttentionShape& shape, Tensor& out_,
                           Tensor* lse) {
  check_attention(q, kv, layout, shape);
  check(out_.count() == q.count() && (lse == nullptr || lse->count() == rows_of(q) * shape.heads), "attention: out [T, H*K], lse [T, H]");
  AttentionPass(*this, q, kv, layout, shape).forward(out(out_), lse == nullptr ? nullptr : out(*lse));
}

void FastDevice::attention_backward(const Tensor& q, const KeyValues& kv, const Layout& layout, const AttentionShape& shape,
                                    const Tensor& out_, const Tensor& lse, const Tensor& dout, Tensor& dq, Tensor& dk, Tensor& dv) {
  check_attention(q, kv, layout, shape);
  check(kv.page_size == 0, "attention_backward: not through pages");
  check(out_.count() == q.count() && dout.count() == q.count() && dq.count() == q.count() && lse.count() == rows_of(q) * shape.heads,
        "attention_backward: q, out, dout, dq [T, H*K], lse [T, H]");
  check(dk.count() == kv.k.count() && dv.count() == kv.v.count(), "attention_backward: dk, dv are not like k, v");
  fill(dk, 0);
  fill(dv, 0);
  AttentionPass(*this, q, kv, layout, shape).backward({in(out_), in(lse), in(dout)}, {out(dq), out(dk), out(dv)});
}

}  // namespace troupe::engine::ops

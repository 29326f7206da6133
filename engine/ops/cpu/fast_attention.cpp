// Attention in f32 (fast_attention_pairs.h has bf16) over blocks of rows: scores = q k^T and out = e v are products of the same kernels as
// every other matrix, over runs of keys that lie together. A score is one dot product and an output one chain in the order of keys, so
// neither the block, nor the pages, nor the rest of the batch changes a bit. A row's weights outside its own keys are zeros, which leave
// its chain as it is. Keys outside the windows of all rows of a block are not visited.
#include <algorithm>

#include "engine/ops/cpu/attention_rows.h"
#include "engine/ops/cpu/fast_attention_pairs.h"

namespace troupe::engine::ops {
namespace {

/// A block of rows of one sequence and one key/value head, or one row with several separate heads.
struct Block {
  std::size_t sequence;
  int kv_head, kv_heads;
  std::int64_t row, rows;
  std::int64_t first, end;  ///< the keys that any row of the block sees
  std::int64_t keys() const { return end - first; }
};

std::int64_t rows_of_block(std::int64_t keys) { return std::clamp<std::int64_t>(65536 / keys, 1, 48); }

}  // namespace

/// The operands of one call, as the blocks need them.
class AttentionPass {
 public:
  AttentionPass(FastDevice& device, const Tensor& q, const KeyValues& kv, const Layout& layout, const AttentionShape& shape)
      : device_(device),
        kernels_(device.kernels_),
        layout_(layout),
        shape_(shape),
        rows_(kernels_, layout, shape),
        runs_(kv, layout, shape.window),
        q_(in(q)),
        k_(in(kv.k)),
        v_(in(kv.v)) {}

  void forward(float* out, float* lse);
  void backward(const float* out, const float* lse, const float* dout, float* dq, float* dk, float* dv);

 private:
  /// Rows of a block that are computed together: one head of several rows, or the heads of one row.
  struct Group {
    std::int64_t first, rows, stride;  ///< (row, head) pairs: first, first + stride, ...
    std::int64_t row_of(std::int64_t i) const { return first + i * stride; }
  };
  template <class Visit>
  void for_each_group(const Block& block, Visit visit) const;
  /// `together`: heads of one row at most.
  std::vector<Block> blocks(int together) const;
  /// Heads that one thread takes of a row alone, where there is nothing that they share.
  int heads_together() const;
  /// Calls visit(run) for the runs of a block's keys, and has the rows of `from` that the next run needs fetched meanwhile: pages are
  /// scattered, and the processor's own prefetching ends with each.
  template <class Visit>
  void for_each_run(const Block& block, const float* from, Visit visit) const;
  std::int64_t width() const { return std::int64_t{shape_.kv_heads} * shape_.head_size; }

  void forward_block(const Block& block, int worker, float* out, float* lse);
  void forward_row(const Block& block, int worker, float* out, float* lse);
  /// visit(heads, key, first) for a few keys at a time: `of` (k or v) beside the weights [heads, keys], and what is ahead, at last `then`.
  template <class Visit>
  void for_each_part(const Block& block, const float* of, const float* then, float* weights, Visit visit) const;
  void backward_group(const Block& block, const Group& group, int worker, const float* out, const float* lse, const float* dout, float* dq,
                      float* dk, float* dv);
  /// to [rows, keys] = rows of `left` against `right` (k or v).
  void against_keys(const Block& block, const Group& group, const float* left, const float* right, float* to, int worker) const;

  FastDevice& device_;
  const Kernels& kernels_;
  const Layout& layout_;
  const AttentionShape& shape_;
  AttentionRows rows_;
  KeyRuns runs_;
  const float *q_, *k_, *v_;
};

template <class Visit>
void AttentionPass::for_each_run(const Block& block, const float* from, Visit visit) const {
  constexpr std::int64_t most = 32;
  runs_.for_each(block.sequence, {block.first, block.end}, [&](const KeyRun& run, const KeyRun& next) {
    fetch_rows(from + next.row * width() + block.kv_head * shape_.head_size, width(), std::min(next.keys, most), shape_.head_size);
    visit(run);
  });
}

int AttentionPass::heads_together() const {
  if (shape_.heads != shape_.kv_heads) return 1;
  int together = shape_.kv_heads;
  const std::int64_t enough = device_.pool_.threads() == 1 ? 1 : std::int64_t{3} * device_.pool_.threads();
  while (together > 1 && layout_.sequences() * (shape_.kv_heads / together) < enough) together = (together + 1) / 2;
  return together;
}

std::vector<Block> AttentionPass::blocks(int together) const {
  std::vector<Block> all;
  for (std::size_t n = 0; n + 1 < layout_.offsets.size(); ++n) {
    const std::int64_t begin = layout_.offsets[n], end = layout_.offsets[n + 1];
    if (begin == end) continue;
    const std::int64_t seen = keys_seen(layout_, begin, end, shape_.window).end;
    const std::int64_t most = rows_of_block(shape_.window == 0 ? seen : std::min<std::int64_t>(seen, shape_.window));
    const int heads = end - begin == 1 ? together : 1;
    for (int g = 0; g < shape_.kv_heads; g += heads) {
      for (std::int64_t row = begin; row < end; row += most) {
        const std::int64_t rows = std::min(most, end - row);
        const Keys keys = keys_seen(layout_, row, row + rows, shape_.window);
        all.push_back({n, g, std::min(heads, shape_.kv_heads - g), row, rows, keys.first, keys.end});
      }
    }
  }
  return all;
}

template <class Visit>
void AttentionPass::for_each_group(const Block& block, Visit visit) const {
  const int share = shape_.heads / shape_.kv_heads;
  const std::int64_t first = block.row * shape_.heads + std::int64_t{block.kv_head} * share;
  if (block.rows == 1) return visit(Group{first, share, 1});
  for (int h = 0; h < share; ++h) visit(Group{first + h, block.rows, shape_.heads});
}

void AttentionPass::against_keys(const Block& block, const Group& group, const float* left, const float* right, float* to,
                                 int worker) const {
  const std::int64_t size = shape_.head_size, column = block.kv_head * size;
  for_each_run(block, right, [&](const KeyRun& run) {
    kernels_.dot_product({group.rows, run.keys, size, left + group.first * size, group.stride * size, 1, right + run.row * width() + column,
                          width(), to + run.key - block.first, block.keys(), false},
                         device_.scratch(worker));
  });
}

template <class Visit>
void AttentionPass::for_each_part(const Block& block, const float* of, const float* then, float* weights, Visit visit) const {
  constexpr std::int64_t most = 16;
  const float* first = of + block.kv_head * shape_.head_size;
  const float* waiting = nullptr;
  RowHeads heads{block.kv_heads, shape_.head_size, 0, nullptr, width(), 0, weights, block.keys()};
  const auto pass = [&](const float* behind) {
    if (waiting == nullptr) return;
    heads.ahead = behind - waiting, heads.rows = waiting;
    visit(heads, heads.weights == weights);
    heads.weights += heads.keys;
  };
  runs_.for_each(block.sequence, {block.first, block.end}, [&](const KeyRun& run, const KeyRun&) {
    for (std::int64_t done = 0; done < run.keys; done += most) {
      const float* rows = first + (run.row + done) * width();
      pass(rows);
      waiting = rows, heads.keys = std::min(most, run.keys - done);
    }
  });
  pass(then);
}

void AttentionPass::forward_row(const Block& block, int worker, float* out, float* lse) {
  const std::int64_t keys = block.keys(), first = block.row * shape_.heads + block.kv_head, at = first * shape_.head_size;
  float* weights = device_.score_scratch_[static_cast<std::size_t>(worker)].need(block.kv_heads * (keys + 1));
  float* inverse = weights + block.kv_heads * keys;
  const float* values = nullptr;  // the first that will be read
  runs_.for_each(block.sequence, {block.first, block.end}, [&](const KeyRun& run, const KeyRun&) {
    if (values == nullptr) values = v_ + run.row * width() + block.kv_head * shape_.head_size;
  });
  for_each_part(block, k_, values, weights, [&](const RowHeads& heads, bool) { kernels_.row_scores(heads, q_ + at); });
  for (int h = 0; h < block.kv_heads; ++h) {
    const SoftmaxSums sums = rows_.weigh(first + h, {block.first, block.end}, weights + h * keys);
    inverse[h] = static_cast<float>(1 / sums.sum);
    if (lse != nullptr) lse[first + h] = lse_of(sums);
  }
  for_each_part(block, v_, values, weights, [&](const RowHeads& heads, bool begins) { kernels_.row_values(heads, out + at, !begins); });
  for (int h = 0; h < block.kv_heads; ++h) kernels_.scale(out + at + h * shape_.head_size, inverse[h], shape_.head_size);
}

void AttentionPass::forward_block(const Block& block, int worker, float* out, float* lse) {
  if (block.rows == 1 && shape_.heads == shape_.kv_heads) return forward_row(block, worker, out, lse);
  const std::int64_t size = shape_.head_size, column = block.kv_head * size, width_of_scores = block.keys();
  for_each_group(block, [&](const Group& group) {
    float* scores = device_.score_scratch_[static_cast<std::size_t>(worker)].need(group.rows * (width_of_scores + 2));
    auto* inverse = scores + group.rows * width_of_scores;
    against_keys(block, group, q_, k_, scores, worker);
    for (std::int64_t i = 0; i < group.rows; ++i) {
      const std::int64_t pair = group.row_of(i);
      const SoftmaxSums sums = rows_.weigh(pair, {block.first, block.end}, scores + i * width_of_scores);
      inverse[i] = static_cast<float>(1 / sums.sum);
      if (lse != nullptr) lse[pair] = lse_of(sums);
    }
    for_each_run(block, v_, [&](const KeyRun& run) {
      kernels_.outer_product(
          {group.rows, size, run.keys, scores + run.key - block.first, width_of_scores, 1, v_ + run.row * width() + column, width(),
           out + group.first * size, group.stride * size, run.key > block.first},
          device_.scratch(worker));
    });
    for (std::int64_t i = 0; i < group.rows; ++i) kernels_.scale(out + group.row_of(i) * size, inverse[i], size);
  });
}

void AttentionPass::forward(float* out, float* lse) {
  const std::vector<Block> all = blocks(heads_together());
  std::int64_t work = 0;
  for (const Block& block : all)
    work += block.rows * block.keys() * shape_.head_size * 2 * (shape_.heads / shape_.kv_heads) * block.kv_heads;
  const std::int64_t pieces = work < 100'000 ? 1 : static_cast<std::int64_t>(all.size());
  device_.pool_.run(pieces, [&](std::int64_t piece, int worker) {
    if (pieces > 1) return forward_block(all[static_cast<std::size_t>(piece)], worker, out, lse);
    for (const Block& block : all) forward_block(block, worker, out, lse);
  });
}

void AttentionPass::backward_group(const Block& block, const Group& group, int worker, const float* out, const float* lse,
                                   const float* dout, float* dq, float* dk, float* dv) {
  const std::int64_t size = shape_.head_size, keys = block.keys(), first = layout_.offsets[block.sequence] + block.first;
  const std::int64_t column = first * width() + block.kv_head * size;
  float* p = device_.score_scratch_[static_cast<std::size_t>(worker)].need(2 * group.rows * keys);
  float* ds = p + group.rows * keys;
  against_keys(block, group, q_, k_, p, worker);
  against_keys(block, group, dout, v_, ds, worker);
  for (std::int64_t i = 0; i < group.rows; ++i) {
    const std::int64_t pair = group.row_of(i);
    const float row_dot = kernels_.dot(out + pair * size, dout + pair * size, size);
    rows_.slopes(pair, {block.first, block.end}, row_dot, lse[pair], p + i * keys, ds + i * keys);
  }
  float* memory = device_.scratch(worker);
  const std::int64_t at = group.first * size, apart = group.stride * size;
  kernels_.outer_product({keys, size, group.rows, p, 1, keys, dout + at, apart, dv + column, width(), true}, memory);
  kernels_.outer_product({keys, size, group.rows, ds, 1, keys, q_ + at, apart, dk + column, width(), true}, memory);
  kernels_.outer_product({group.rows, size, keys, ds, keys, 1, k_ + column, width(), dq + at, apart, false}, memory);
}

void AttentionPass::backward(const float* out, const float* lse, const float* dout, float* dq, float* dk, float* dv) {
  // dk and dv of one sequence and head are one chain over its blocks, so one thread takes them all, in order.
  const std::vector<Block> all = blocks(1);
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 0 || all[i].sequence != all[i - 1].sequence || all[i].kv_head != all[i - 1].kv_head) begins.push_back(i);
  }
  begins.push_back(all.size());
  device_.pool_.run(static_cast<std::int64_t>(begins.size()) - 1, [&](std::int64_t chain, int worker) {
    for (std::size_t i = begins[static_cast<std::size_t>(chain)]; i < begins[static_cast<std::size_t>(chain) + 1]; ++i) {
      for_each_group(all[i], [&](const Group& group) { backward_group(all[i], group, worker, out, lse, dout, dq, dk, dv); });
    }
  });
}

void FastDevice::attention(const Tensor& q, const KeyValues& kv, const Layout& layout, const AttentionShape& shape, Precision precision,
                           Tensor& out_, Tensor* lse) {
  check_attention(q, kv, layout, shape);
  check(out_.count() == q.count() && (lse == nullptr || lse->count() == rows_of(q) * shape.heads), "attention: out [T, H*K], lse [T, H]");
  float *to = out(out_), *kept = lse == nullptr ? nullptr : out(*lse);
  if (precision == Precision::bf16) return PairAttention(*this, q, kv, layout, shape).forward(to, kept);
  AttentionPass(*this, q, kv, layout, shape).forward(to, kept);
}

void FastDevice::attention_backward(const Tensor& q, const KeyValues& kv, const Layout& layout, const AttentionShape& shape,
                                    Precision precision, const Tensor& out_, const Tensor& lse, const Tensor& dout, Tensor& dq, Tensor& dk,
                                    Tensor& dv) {
  check_attention(q, kv, layout, shape);
  check(kv.page_size == 0, "attention_backward: not through pages");
  check(out_.count() == q.count() && dout.count() == q.count() && dq.count() == q.count() && lse.count() == rows_of(q) * shape.heads,
        "attention_backward: q, out, dout, dq [T, H*K], lse [T, H]");
  check(dk.count() == kv.k.count() && dv.count() == kv.v.count(), "attention_backward: dk, dv are not like k, v");
  if (precision == Precision::bf16)
    return PairAttention(*this, q, kv, layout, shape).backward({in(out_), in(lse), in(dout)}, {out(dq), out(dk), out(dv)});
  fill(dk, 0);
  fill(dv, 0);
  AttentionPass(*this, q, kv, layout, shape).backward(in(out_), in(lse), in(dout), out(dq), out(dk), out(dv));
}

}  // namespace troupe::engine::ops

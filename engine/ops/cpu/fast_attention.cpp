// Attention over blocks of rows: scores = q k^T and out = e v are products of the same kernels as every other matrix, over runs of keys
// that lie together. A score is one dot product and an output one chain in the order of keys, so neither the block, nor the pages,
// nor the rest of the batch changes a bit. A row's weights outside its own keys are zeros, which leave its chain as it is. Keys outside
// the windows of all rows of a block are not visited.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {
namespace {

/// A block of rows of one sequence and one key/value head.
struct Block {
  std::size_t sequence;
  int kv_head;
  std::int64_t row, rows;
  std::int64_t first, end;  ///< the keys that any row of the block sees
  std::int64_t keys() const { return end - first; }
};

std::int64_t rows_of_block(std::int64_t keys) { return std::clamp<std::int64_t>(65536 / keys, 1, 48); }

/// The keys first .. end - 1.
struct Keys {
  std::int64_t first, end;
};

/// Those that a row at this position sees.
Keys keys_at(std::int64_t position, int window) {
  return {window == 0 ? 0 : std::max<std::int64_t>(0, position + 1 - window), position + 1};
}

/// Those that some of the rows see.
Keys keys_seen(const Layout& layout, std::int64_t begin, std::int64_t end, int window) {
  const auto [least, most] = std::minmax_element(layout.positions.begin() + begin, layout.positions.begin() + end);
  return {keys_at(*least, window).first, std::int64_t{*most} + 1};
}

/// Keys key .. key + keys - 1 of a sequence, which lie in rows row, row + 1, ...
struct Run {
  std::int64_t key, keys, row;
};

/// The longest runs of keys of sequence n that lie together, from the page of the first one on.
void append_runs(const KeyValues& kv, const Layout& layout, std::size_t n, Keys keys, std::vector<Run>& runs) {
  if (kv.page_size == 0) return runs.push_back({0, keys.end, layout.offsets[n]});
  const auto& pages = kv.pages[n];
  const std::int64_t size = kv.page_size;
  for (std::int64_t key = keys.first / size * size; key < keys.end; key += runs.back().keys) {
    const auto first = static_cast<std::size_t>(key / size);
    std::size_t last = first + 1;
    while (static_cast<std::int64_t>(last) * size < keys.end && pages[last] == pages[last - 1] + 1) ++last;
    runs.push_back({key, std::min(keys.end - key, static_cast<std::int64_t>(last - first) * size), pages[first] * size});
  }
}

}  // namespace

/// The operands of one call, as the blocks need them.
class AttentionPass {
 public:
  AttentionPass(FastDevice& device, const Tensor& q, const KeyValues& kv, const Layout& layout, const AttentionShape& shape)
      : device_(device), kernels_(device.kernels_), layout_(layout), shape_(shape), q_(in(q)), k_(in(kv.k)), v_(in(kv.v)) {
    for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n) {
      first_run_.push_back(runs_.size());
      if (layout.offsets[n] < layout.offsets[n + 1]) {
        append_runs(kv, layout, n, keys_seen(layout, layout.offsets[n], layout.offsets[n + 1], shape.window), runs_);
      }
    }
    first_run_.push_back(runs_.size());
  }

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
  std::vector<Block> blocks() const;
  /// Calls visit(run) for the runs of a block's keys, and has the rows of `from` that the next run needs fetched meanwhile: pages are
  /// scattered, and the processor's own prefetching ends with each.
  template <class Visit>
  void for_each_run(const Block& block, const float* from, Visit visit) const;
  Keys keys_of(std::int64_t pair) const { return keys_at(layout_.positions[static_cast<std::size_t>(pair / shape_.heads)], shape_.window); }
  /// What remains to multiply scores by when they are capped and tilted.
  float factor() const { return shape_.softcap == 0 && shape_.slopes.empty() ? shape_.scale : 1; }
  /// Products of a row with its keys become scaled and capped.
  void cap_scores(float* scores, Keys keys) const;
  /// And get their slope.
  void tilt_scores(float* scores, std::int64_t pair, Keys keys) const;
  std::int64_t width() const { return std::int64_t{shape_.kv_heads} * shape_.head_size; }

  void forward_block(const Block& block, int worker, float* out, float* lse);
  /// Of one row and head: products with keys become weights p, and products of dout with values the gradients of the products with keys.
  void backward_row(const Block& block, std::int64_t pair, float dot, float lse, float* p, float* ds) const;
  void backward_group(const Block& block, const Group& group, int worker, const float* out, const float* lse, const float* dout, float* dq,
                      float* dk, float* dv);
  /// to [rows, keys] = rows of `left` against `right` (k or v).
  void against_keys(const Block& block, const Group& group, const float* left, const float* right, float* to, int worker) const;

  FastDevice& device_;
  const Kernels& kernels_;
  const Layout& layout_;
  const AttentionShape& shape_;
  const float *q_, *k_, *v_;
  std::vector<Run> runs_;               ///< of every sequence
  std::vector<std::size_t> first_run_;  ///< [N+1]
};

template <class Visit>
void AttentionPass::for_each_run(const Block& block, const float* from, Visit visit) const {
  constexpr std::int64_t line = 16;
  const std::size_t end = first_run_[block.sequence + 1];
  for (std::size_t i = first_run_[block.sequence]; i < end && runs_[i].key < block.end; ++i) {
    const std::int64_t skipped = std::max<std::int64_t>(0, block.first - runs_[i].key);
    if (skipped >= runs_[i].keys) continue;
    if (i + 1 < end) {
      const std::int64_t rows = std::min<std::int64_t>(runs_[i + 1].keys, 32);
      for (std::int64_t row = runs_[i + 1].row; row < runs_[i + 1].row + rows; ++row) {
        const float* at = from + row * width() + block.kv_head * shape_.head_size;
        for (std::int64_t column = 0; column < shape_.head_size; column += line) __builtin_prefetch(at + column);
      }
    }
    visit(Run{runs_[i].key + skipped, std::min(runs_[i].keys, block.end - runs_[i].key) - skipped, runs_[i].row + skipped});
  }
}

std::vector<Block> AttentionPass::blocks() const {
  std::vector<Block> all;
  for (std::size_t n = 0; n + 1 < layout_.offsets.size(); ++n) {
    const std::int64_t begin = layout_.offsets[n], end = layout_.offsets[n + 1];
    if (begin == end) continue;
    const std::int64_t seen = keys_seen(layout_, begin, end, shape_.window).end;
    const std::int64_t most = rows_of_block(shape_.window == 0 ? seen : std::min<std::int64_t>(seen, shape_.window));
    for (int g = 0; g < shape_.kv_heads; ++g) {
      for (std::int64_t row = begin; row < end; row += most) {
        const std::int64_t rows = std::min(most, end - row);
        const Keys keys = keys_seen(layout_, row, row + rows, shape_.window);
        all.push_back({n, g, row, rows, keys.first, keys.end});
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
  for_each_run(block, right, [&](const Run& run) {
    kernels_.dot_product({group.rows, run.keys, size, left + group.first * size, group.stride * size, 1, right + run.row * width() + column,
                          width(), to + run.key - block.first, block.keys(), false},
                         device_.scratch(worker));
  });
}

void AttentionPass::cap_scores(float* scores, Keys keys) const {
  if (shape_.softcap != 0) return kernels_.cap(scores, keys.end - keys.first, shape_.scale, shape_.softcap);
  if (!shape_.slopes.empty()) kernels_.scale(scores, shape_.scale, keys.end - keys.first);
}

void AttentionPass::tilt_scores(float* scores, std::int64_t pair, Keys keys) const {
  if (shape_.slopes.empty()) return;
  const float slope = shape_.slopes[static_cast<std::size_t>(pair % shape_.heads)];
  kernels_.tilt(scores, keys.end - keys.first, slope, keys.first + 1 - keys.end);
}

void AttentionPass::forward_block(const Block& block, int worker, float* out, float* lse) {
  const std::int64_t size = shape_.head_size, column = block.kv_head * size, width_of_scores = block.keys();
  for_each_group(block, [&](const Group& group) {
    float* scores = device_.score_scratch_[static_cast<std::size_t>(worker)].need(group.rows * (width_of_scores + 2));
    auto* inverse = scores + group.rows * width_of_scores;
    against_keys(block, group, q_, k_, scores, worker);
    for (std::int64_t i = 0; i < group.rows; ++i) {
      const std::int64_t pair = group.row_of(i);
      const Keys keys = keys_of(pair);
      float *row = scores + i * width_of_scores, *own = row + (keys.first - block.first);
      cap_scores(own, keys);
      tilt_scores(own, pair, keys);
      const SoftmaxSums sums = kernels_.softmax_in_place(own, keys.end - keys.first, factor());
      std::fill(row, own, 0.0F);
      std::fill(own + (keys.end - keys.first), row + width_of_scores, 0.0F);
      inverse[i] = static_cast<float>(1 / sums.sum);
      if (lse != nullptr) lse[pair] = static_cast<float>(double{sums.largest} + std::log(sums.sum));
    }
    for_each_run(block, v_, [&](const Run& run) {
      kernels_.outer_product(
          {group.rows, size, run.keys, scores + run.key - block.first, width_of_scores, 1, v_ + run.row * width() + column, width(),
           out + group.first * size, group.stride * size, run.key > block.first},
          device_.scratch(worker));
    });
    for (std::int64_t i = 0; i < group.rows; ++i) kernels_.scale(out + group.row_of(i) * size, inverse[i], size);
  });
}

void AttentionPass::forward(float* out, float* lse) {
  const std::vector<Block> all = blocks();
  std::int64_t work = 0;
  for (const Block& block : all) work += block.rows * block.keys() * shape_.head_size * 2 * (shape_.heads / shape_.kv_heads);
  const std::int64_t pieces = work < 100'000 ? 1 : static_cast<std::int64_t>(all.size());
  device_.pool_.run(pieces, [&](std::int64_t piece, int worker) {
    if (pieces > 1) return forward_block(all[static_cast<std::size_t>(piece)], worker, out, lse);
    for (const Block& block : all) forward_block(block, worker, out, lse);
  });
}

void AttentionPass::backward_row(const Block& block, std::int64_t pair, float dot, float lse, float* p, float* ds) const {
  const Keys keys = keys_of(pair);
  const std::int64_t before = keys.first - block.first, seen = keys.end - keys.first;
  cap_scores(p + before, keys);
  if (shape_.softcap != 0) kernels_.cap_backward(p + before, ds + before, seen, shape_.softcap, std::exchange(dot, 0.0F));
  tilt_scores(p + before, pair, keys);
  kernels_.attention_weights(p + before, seen, factor(), lse);
  kernels_.attention_dscores(p + before, ds + before, seen, dot, shape_.scale);
  for (float* row : {p, ds}) {
    std::fill(row, row + before, 0.0F);
    std::fill(row + before + seen, row + block.keys(), 0.0F);
  }
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
    backward_row(block, pair, row_dot, lse[pair], p + i * keys, ds + i * keys);
  }
  float* memory = device_.scratch(worker);
  const std::int64_t at = group.first * size, apart = group.stride * size;
  kernels_.outer_product({keys, size, group.rows, p, 1, keys, dout + at, apart, dv + column, width(), true}, memory);
  kernels_.outer_product({keys, size, group.rows, ds, 1, keys, q_ + at, apart, dk + column, width(), true}, memory);
  kernels_.outer_product({group.rows, size, keys, ds, keys, 1, k_ + column, width(), dq + at, apart, false}, memory);
}

void AttentionPass::backward(const float* out, const float* lse, const float* dout, float* dq, float* dk, float* dv) {
  // dk and dv of one sequence and head are one chain over its blocks, so one thread takes them all, in order.
  const std::vector<Block> all = blocks();
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
  AttentionPass(*this, q, kv, layout, shape).backward(in(out_), in(lse), in(dout), out(dq), out(dk), out(dv));
}

}  // namespace troupe::engine::ops

// Attention in f32 of rows that are alone in their sequences: a step of generation. Their keys and
// values are read where they lie, since packing them (packed_attention.h) would take longer than
// using them once; the bits are the same.
#include <algorithm>

#include "engine/ops/cpu/attention_rows.h"
#include "engine/ops/cpu/packed_attention.h"

namespace troupe::engine::ops {
namespace {

/// One row with some heads: those of a key/value head, or several of their own.
struct Block {
  std::size_t sequence;
  int kv_head, kv_heads;
  std::int64_t row;
  Keys seen;
};

}  // namespace

/// The operands of one call, as the blocks need them.
class RowAttention {
 public:
  RowAttention(FastDevice& device, const Tensor& q, const KeyValues& kv, const Layout& layout,
               const AttentionShape& shape)
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

 private:
  std::int64_t share() const { return shape_.heads / shape_.kv_heads; }
  std::int64_t width() const { return std::int64_t{shape_.kv_heads} * shape_.head_size; }
  std::vector<Block> blocks() const;
  /// Heads that one thread takes of a row, where there is nothing that they share.
  int heads_together() const;
  /// Calls visit(run) for the runs of a block's keys, and has the rows of `from` that the next run
  /// needs fetched meanwhile: pages are scattered, and the processor's own prefetching ends with
  /// each.
  template <class Visit>
  void for_each_run(const Block& block, const float* from, Visit visit) const;
  /// visit(heads, key, first) for a few keys at a time: `of` (k or v) beside the weights [heads,
  /// keys], and what is ahead, at last `then`.
  template <class Visit>
  void for_each_part(const Block& block, const float* of, const float* then, float* weights,
                     Visit visit) const;
  void forward_block(const Block& block, int worker, float* out, float* lse) const;
  /// Scores of heads that share their keys, or of such as do not; and what their weights make of
  /// the values.
  void shared_scores(const Block& block, int worker, float* weights) const;
  void shared_values(const Block& block, int worker, const float* weights, float* out) const;
  void separate_scores(const Block& block, float* weights) const;
  void separate_values(const Block& block, float* weights, float* out) const;
  /// The values that are read first.
  const float* first_values(const Block& block) const;

  FastDevice& device_;
  const Kernels& kernels_;
  const Layout& layout_;
  const AttentionShape& shape_;
  AttentionRows rows_;
  KeyRuns runs_;
  const float *q_, *k_, *v_;
};

template <class Visit>
void RowAttention::for_each_run(const Block& block, const float* from, Visit visit) const {
  constexpr std::int64_t most = 32;
  runs_.for_each(block.sequence, block.seen, [&](const KeyRun& run, const KeyRun& next) {
    fetch_rows(from + next.row * width() + block.kv_head * shape_.head_size, width(),
               std::min(next.keys, most), shape_.head_size);
    visit(run);
  });
}

int RowAttention::heads_together() const {
  if (share() > 1) return 1;
  int together = shape_.kv_heads;
  const std::int64_t enough =
      device_.pool_.threads() == 1 ? 1 : std::int64_t{3} * device_.pool_.threads();
  while (together > 1 && layout_.sequences() * (shape_.kv_heads / together) < enough)
    together = (together + 1) / 2;
  return together;
}

std::vector<Block> RowAttention::blocks() const {
  std::vector<Block> all;
  const int together = heads_together();
  for (std::size_t n = 0; n + 1 < layout_.offsets.size(); ++n) {
    const std::int64_t row = layout_.offsets[n];
    if (row == layout_.offsets[n + 1]) continue;
    for (int g = 0; g < shape_.kv_heads; g += together)
      all.push_back({n, g, std::min(together, shape_.kv_heads - g), row,
                     keys_seen(layout_, row, row + 1, shape_.window)});
  }
  return all;
}

void RowAttention::shared_scores(const Block& block, int worker, float* weights) const {
  const std::int64_t size = shape_.head_size;
  const float* q = q_ + (block.row * shape_.heads + block.kv_head * share()) * size;
  for_each_run(block, k_, [&](const KeyRun& run) {
    kernels_.dot_product(
        {share(), run.keys, size, q, size, 1, k_ + run.row * width() + block.kv_head * size,
         width(), weights + run.key - block.seen.first, block.seen.count(), false},
        device_.scratch(worker));
  });
}

void RowAttention::shared_values(const Block& block, int worker, const float* weights,
                                 float* out) const {
  const std::int64_t size = shape_.head_size;
  for_each_run(block, v_, [&](const KeyRun& run) {
    kernels_.outer_product({share(), size, run.keys, weights + run.key - block.seen.first,
                            block.seen.count(), 1, v_ + run.row * width() + block.kv_head * size,
                            width(), out, size, run.key > block.seen.first},
                           device_.scratch(worker));
  });
}

template <class Visit>
void RowAttention::for_each_part(const Block& block, const float* of, const float* then,
                                 float* weights, Visit visit) const {
  constexpr std::int64_t most = 16;
  const float* first = of + block.kv_head * shape_.head_size;
  const float* waiting = nullptr;
  RowHeads heads{block.kv_heads, shape_.head_size,  0, nullptr, width(), 0,
                 weights,        block.seen.count()};
  const auto pass = [&](const float* behind) {
    if (waiting == nullptr) return;
    heads.ahead = behind - waiting, heads.rows = waiting;
    visit(heads, heads.weights == weights);
    heads.weights += heads.keys;
  };
  runs_.for_each(block.sequence, block.seen, [&](const KeyRun& run, const KeyRun&) {
    for (std::int64_t done = 0; done < run.keys; done += most) {
      const float* rows = first + (run.row + done) * width();
      pass(rows);
      waiting = rows, heads.keys = std::min(most, run.keys - done);
    }
  });
  pass(then);
}

const float* RowAttention::first_values(const Block& block) const {
  const float* values = nullptr;
  runs_.for_each(block.sequence, block.seen, [&](const KeyRun& run, const KeyRun&) {
    if (values == nullptr) values = v_ + run.row * width() + block.kv_head * shape_.head_size;
  });
  return values;
}

void RowAttention::separate_scores(const Block& block, float* weights) const {
  const float* q = q_ + (block.row * shape_.heads + block.kv_head) * shape_.head_size;
  for_each_part(block, k_, first_values(block), weights,
                [&](const RowHeads& heads, bool) { kernels_.row_scores(heads, q); });
}

void RowAttention::separate_values(const Block& block, float* weights, float* out) const {
  for_each_part(block, v_, first_values(block), weights, [&](const RowHeads& heads, bool begins) {
    kernels_.row_values(heads, out, !begins);
  });
}

void RowAttention::forward_block(const Block& block, int worker, float* out, float* lse) const {
  const std::int64_t keys = block.seen.count(), heads = share() * block.kv_heads,
                     size = shape_.head_size;
  const std::int64_t first = block.row * shape_.heads + block.kv_head * share();
  float* weights =
      device_.score_scratch_[static_cast<std::size_t>(worker)].need(heads * (keys + 1));
  float* inverse = weights + heads * keys;
  share() > 1 ? shared_scores(block, worker, weights) : separate_scores(block, weights);
  for (std::int64_t h = 0; h < heads; ++h) {
    const SoftmaxSums sums = rows_.weigh(first + h, block.seen, weights + h * keys);
    inverse[h] = static_cast<float>(1 / sums.sum);
    if (lse != nullptr) lse[first + h] = lse_of(sums);
  }
  out += first * size;
  share() > 1 ? shared_values(block, worker, weights, out) : separate_values(block, weights, out);
  for (std::int64_t h = 0; h < heads; ++h) kernels_.scale(out + h * size, inverse[h], size);
}

void RowAttention::forward(float* out, float* lse) {
  const std::vector<Block> all = blocks();
  std::int64_t work = 0;
  for (const Block& block : all)
    work += block.seen.count() * shape_.head_size * 2 * share() * block.kv_heads;
  const std::int64_t pieces = work < 100'000 ? 1 : static_cast<std::int64_t>(all.size());
  device_.pool_.run(pieces, [&](std::int64_t piece, int worker) {
    if (pieces > 1) return forward_block(all[static_cast<std::size_t>(piece)], worker, out, lse);
    for (const Block& block : all) forward_block(block, worker, out, lse);
  });
}

namespace {

/// Whether no sequence has more than one row.
bool alone(const Layout& layout) {
  return std::adjacent_find(layout.offsets.begin(), layout.offsets.end(), [](auto begin, auto end) {
           return end - begin > 1;
         }) == layout.offsets.end();
}

}  // namespace

void FastDevice::attention(const Tensor& q, const KeyValues& kv, const Layout& layout,
                           const AttentionShape& shape, Precision precision, Tensor& out_,
                           Tensor* lse) {
  check_attention(q, kv, layout, shape);
  check(out_.count() == q.count() && (lse == nullptr || lse->count() == rows_of(q) * shape.heads),
        "attention: out [T, H*K], lse [T, H]");
  float *to = out(out_), *kept = lse == nullptr ? nullptr : out(*lse);
  if (precision == Precision::f32 && alone(layout))
    return RowAttention(*this, q, kv, layout, shape).forward(to, kept);
  PackedAttention(*this, q, kv, layout, shape, precision).forward(to, kept);
}

void FastDevice::attention_backward(const Tensor& q, const KeyValues& kv, const Layout& layout,
                                    const AttentionShape& shape, Precision precision,
                                    const Tensor& out_, const Tensor& lse, const Tensor& dout,
                                    Tensor& dq, Tensor& dk, Tensor& dv) {
  check_attention(q, kv, layout, shape);
  check(kv.page_size == 0, "attention_backward: not through pages");
  check(out_.count() == q.count() && dout.count() == q.count() && dq.count() == q.count() &&
            lse.count() == rows_of(q) * shape.heads,
        "attention_backward: q, out, dout, dq [T, H*K], lse [T, H]");
  check(dk.count() == kv.k.count() && dv.count() == kv.v.count(),
        "attention_backward: dk, dv are not like k, v");
  PackedAttention(*this, q, kv, layout, shape, precision)
      .backward({in(out_), in(lse), in(dout)}, {out(dq), out(dk), out(dv)});
}

}  // namespace troupe::engine::ops

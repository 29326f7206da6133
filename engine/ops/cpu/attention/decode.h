// f32 attention of rows that are alone in their sequence: a decoding step. Keys and values are read
// in place, because packing them (tiled_attention.h) takes longer than using them once. The bits
// are those of TiledAttention.
#pragma once

#include <vector>

#include "engine/ops/cpu/attention/softmax.h"
#include "engine/ops/cpu/context/context.h"

namespace troupe::engine::ops::cpu {

/// One call of attention().
class DecodeAttention {
 public:
  DecodeAttention(const Context& context, const AttentionInputs& in);

  /// lse may be nullptr.
  void forward(float* out, float* lse) const;

 private:
  /// One row with the heads of one key/value head, or with several heads that share no keys.
  struct Block {
    std::size_t sequence;
    int kv_head, kv_heads;
    std::int64_t row;
    KeyRange seen;
  };
  std::int64_t heads_per_kv() const { return shape_.heads / shape_.kv_heads; }
  std::int64_t width() const { return std::int64_t{shape_.kv_heads} * shape_.head_size; }
  std::vector<Block> blocks() const;
  /// Key/value heads per block.
  int kv_heads_per_block() const;
  /// Calls visit(run) for the runs of a block's keys, and prefetches the rows of `from` for the
  /// next run: pages are scattered, and the hardware prefetcher stops at the end of each.
  template <class Visit>
  void for_each_run(const Block& block, const float* from, Visit visit) const;
  /// Calls visit(heads, first) for a few keys at a time: rows of `from` (k or v) with their weights
  /// [heads, keys]. The last keys prefetch `next`.
  template <class Visit>
  void for_each_key_block(const Block& block, const float* from, const float* next, float* weights,
                          Visit visit) const;
  void forward_block(const Block& block, int worker, float* out, float* lse) const;
  // Scores and outputs of heads that share their keys, or of heads that do not.
  void shared_scores(const Block& block, int worker, float* weights) const;
  void shared_values(const Block& block, int worker, const float* weights, float* out) const;
  void separate_scores(const Block& block, float* weights) const;
  void separate_values(const Block& block, float* weights, float* out) const;
  /// Returns the values that are read first.
  const float* first_values(const Block& block) const;

  const Context& context_;
  const Kernels& kernels_;
  const Layout& layout_;
  const AttentionShape& shape_;
  SeenKeys seen_;
  AttentionSoftmax softmax_;
  KvRuns runs_;
  const float *q_, *k_, *v_;
};

}  // namespace troupe::engine::ops::cpu

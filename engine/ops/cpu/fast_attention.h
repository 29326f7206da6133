// Attention of the fast device over blocks of rows: scores = q k^T, out = e v and their slopes are products of the same kernels as every
// other matrix, from keys and values that are packed once for a block. A score is one chain over the head's columns, an output one
// over the keys and a gradient of a key one over the rows, so neither blocks, nor pages, nor the rest of the batch change a bit. A row's
// weights outside its own keys are zeros, which leave a chain as it is.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {

/// The keys first .. end - 1.
struct Keys {
  std::int64_t first, end;
  std::int64_t count() const { return end - first; }
};

/// What attention_backward() is given, all [T, H*K] but lse [T, H].
struct AttentionUpstream {
  const float *out, *lse, *dout;
};
/// And what it makes: dq [T, H*K] is assigned; dk, dv [T, G*K] are zeros before.
struct AttentionSlopes {
  float *dq, *dk, *dv;
};

/// One call of attention() or attention_backward().
class AttentionPass {
 public:
  AttentionPass(FastDevice& device, const Tensor& q, const KeyValues& kv, const Layout& layout, const AttentionShape& shape);

  /// lse may be nullptr.
  void forward(float* out, float* lse);
  void backward(const AttentionUpstream& up, const AttentionSlopes& to);

 private:
  /// Keys key .. key + keys - 1 of a sequence, which lie in rows row, row + 1, ...
  struct Run {
    std::int64_t key, keys, row;
  };
  struct Place {
    std::size_t run;
    std::int64_t key;
  };
  /// Rows of one sequence with the heads that share one key/value head.
  struct Block {
    std::size_t sequence;
    int kv_head;
    std::int64_t row, rows;
    Keys keys;  ///< that any row of the block sees
    /// Words from a row of scores to the next: an odd number of lines, so that rows do not fall upon each other in a cache.
    std::int64_t pitch() const { return panels_width(keys.count()) + 16; }
  };
  /// Rows of a block that are computed together: one head of several rows, or the heads of one row.
  struct Group {
    std::int64_t first, rows, stride;  ///< (row, head) pairs: first, first + stride, ...
    Keys keys;                         ///< that any of them sees, from a whole panel of the block's keys on
    std::int64_t row_of(std::int64_t i) const { return first + i * stride; }
  };
  /// Of one block, in a thread's own memory. The last three are there for the way back only.
  struct Memory {
    float* keys;    ///< packed [keys, K]
    float* values;  ///< packed: forward by column [K, keys], backward by key
    float *tiles, *scores, *inverse;
    float *keys_by_column, *dscores, *rows;
  };

  void append_runs(const KeyValues& kv, std::size_t sequence, Keys keys);
  std::int64_t width() const { return std::int64_t{shape_.kv_heads} * shape_.head_size; }
  std::int64_t share() const { return shape_.heads / shape_.kv_heads; }
  /// Those that some of the rows see.
  Keys keys_seen(std::int64_t begin, std::int64_t end) const;
  Keys keys_of(std::int64_t pair) const;
  /// Of at most about `most` rows each.
  std::vector<Block> blocks(std::int64_t most) const;
  std::vector<Block> blocks_for_threads() const;
  /// visit(group), head by head, each in the order of its rows.
  template <class Visit>
  void for_each_group(const Block& block, Visit visit) const;
  /// The only group of a block of one row.
  Group heads_of(const Block& block) const { return {block.row * shape_.heads + block.kv_head * share(), share(), 1, block.keys}; }
  /// The keys of a block from this place on that lie together, up to the end of their panel; none after the last one. Place moves on.
  Run piece_at(const Block& block, Place& place) const;
  /// visit(piece, its rows of `from`) for all keys of a block. Has the rows of later ones fetched meanwhile: they are far apart, and the
  /// processor's own prefetching ends with each page of memory.
  template <class Visit>
  void for_each_piece(const Block& block, const float* from, Visit visit) const;
  /// Has rows of one head fetched into the cache.
  void fetch(const float* from, std::int64_t apart, std::int64_t rows) const;
  /// The rows of `of` that follow on the group's.
  void fetch_next(const Group& group, const float* of) const {
    fetch(of + group.row_of(group.rows) * shape_.head_size, group.stride * shape_.head_size, group.rows);
  }

  Memory memory_for(const Block& block, int worker, bool backward) const;
  /// Keys or values as the columns of scores: panels [K][32 keys].
  void pack_by_key(const Block& block, const float* from, float* to) const;
  /// As the rows that weights are multiplied by: panels [keys][32 columns].
  void pack_by_column(const Block& block, const float* from, float* to) const;
  /// to [keys, 32] for each 32 columns.
  void pack_columns(const float* rows, std::int64_t keys, std::int64_t panel_steps, float* to) const;
  /// The group's rows as tiles.
  void pack_rows(const Group& group, const float* rows, const Memory& memory) const;
  /// The steps of forward_block() for one row: each panel is used while it is warm and forgotten, as reading keys and values takes longest.
  void scores_of_one_row(const Block& block, const Group& heads, const Memory& memory) const;
  void values_of_one_row(const Block& block, const Group& heads, const Memory& memory, float* out) const;
  /// scores [rows, keys] = the group's rows of `left` against keys or values that are packed by key.
  void against_keys(const Block& block, const Group& group, const float* left, const float* packed, const Memory& memory,
                    float* scores) const;
  /// to's rows of the group [rows, K] = weights [rows, keys] against keys or values that are packed by column.
  void over_keys(const Block& block, const Group& group, const float* weights, const float* packed, float* to) const;
  /// to [keys, K] += weights^T [keys, rows] against the group's rows of `right`.
  void over_rows(const Block& block, const Group& group, const float* weights, const float* right, const Memory& memory, float* to) const;

  /// What remains to multiply scores by when they are capped and tilted.
  float factor() const { return shape_.softcap == 0 && shape_.slopes.empty() ? shape_.scale : 1; }
  /// Products of a row with its keys become scaled and capped.
  void cap_scores(float* scores, Keys keys) const;
  /// And get their slope.
  void tilt_scores(float* scores, std::int64_t pair, Keys keys) const;
  /// The group's scores become weights whose sums' inverses are kept.
  void weigh(const Block& block, const Group& group, const Memory& memory, float* lse) const;
  /// Sums over weights become means.
  void finish(const Group& group, const Memory& memory, float* out) const;
  void forward_block(const Block& block, int worker, float* out, float* lse) const;
  /// Of one row and head: products with keys become weights p, and products of dout with values the gradients of the products with keys.
  void backward_row(const Group& group, std::int64_t pair, float dot, float lse, float* p, float* ds) const;
  void backward_group(const Block& block, const Group& group, const Memory& memory, const AttentionUpstream& up,
                      const AttentionSlopes& to) const;

  FastDevice& device_;
  const Kernels& kernels_;
  const Panels& with_;
  const Layout& layout_;
  const AttentionShape& shape_;
  const float *q_, *k_, *v_;
  std::vector<Run> runs_;               ///< of every sequence
  std::vector<std::size_t> first_run_;  ///< [N+1]
};

/// Rows of a group at most: few, as a group computes the scores of all its rows with the keys that its last one sees; and a number of
/// whole tiles of every instruction set.
inline constexpr std::int64_t most_group_rows = 42, least_group_rows = 14;

template <class Visit>
void AttentionPass::for_each_group(const Block& block, Visit visit) const {
  const std::int64_t first = block.row * shape_.heads + block.kv_head * share();
  if (block.rows == 1) return visit(heads_of(block));
  // As many as keep scores in the second-level cache.
  constexpr std::int64_t most_scores = 65536;
  const std::int64_t fitting = most_scores / block.keys.count() / least_group_rows * least_group_rows;
  const std::int64_t most = std::clamp(fitting, least_group_rows, most_group_rows);
  for (std::int64_t h = 0; h < share(); ++h) {
    for (std::int64_t row = 0; row < block.rows; row += most) {
      const std::int64_t rows = std::min(most, block.rows - row);
      Keys keys = keys_seen(block.row + row, block.row + row + rows);
      keys.first -= (keys.first - block.keys.first) % panel_columns;
      visit(Group{first + row * shape_.heads + h, rows, shape_.heads, keys});
    }
  }
}

}  // namespace troupe::engine::ops

// Attention from keys and values that are packed once for all rows and heads of a work item, tile
// by tile as in FlashAttention. In bf16 a score is one chain over the columns of the head, an
// output one chain over the keys, and a gradient of a key one chain over heads and their rows, all
// in pairs of k. Pairs of keys start at even keys, and pairs of rows at even positions of their
// sequence. In f32 a score is a sum of gemm_nt (kernels.h); the others are chains, for gradients of
// keys over blocks of rows and their heads, whose size depends on the number of keys up to 2048:
// the backward pass goes through more of them in parts. So neither work items, tiles, pages nor the
// rest of the batch change a bit. Weights of keys that a row does not see are zeros, which leave a
// chain unchanged.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/ops/cpu/attention/softmax.h"
#include "engine/ops/cpu/context/context.h"

namespace troupe::engine::ops::cpu {

/// One call of attention() or attention_backward().
class TiledAttention {
 public:
  TiledAttention(const Context& context, const AttentionInputs& in);

  /// lse may be nullptr.
  void forward(float* out, float* lse) const;
  void backward(const AttentionBackward& with) const;

 private:
  /// Keys of a work item of backward() at a time.
  static constexpr std::int64_t max_backward_keys = 2048;

  /// Operands of backward().
  struct Gradients {
    const float *out, *lse, *dout;
    float *dq, *dk, *dv;
  };
  /// Work of one thread: rows of one sequence with the heads of one key/value head, or one row with
  /// the heads of several.
  struct WorkItem {
    std::size_t sequence;
    int kv_head, kv_heads;
    std::int64_t row, rows;
    KeyRange keys;           ///< keys that any row sees, from an even key on
    std::int64_t unseen;     ///< 1 if no row sees that even key
    bool some_keys = false;  ///< rows see other keys, too: gradients of queries are added
    std::int64_t padded_keys() const { return padded_columns(keys.count()); }
  };
  /// (row, head) pairs first, first + stride, ... that are computed together: rows of one head, or
  /// all heads of one row.
  struct QTile {
    std::int64_t first, rows, stride;
    KeyRange keys;  ///< keys that any of them sees, from a whole panel of the item on
    std::int64_t pair(std::int64_t i) const { return first + i * stride; }
  };
  /// Tiles of one head whose gradients of keys are computed by one product.
  struct QBlock {
    QTile all;
    std::vector<QTile> tiles;
    std::vector<std::int64_t> ends;  ///< end of the keys of a tile's weights, padded with zeros
  };
  /// Keys of a work item, stored with leading dimension `ld`; the rows after them have leading
  /// dimension width().
  struct KvBlock {
    std::int64_t key, keys;
    const float* rows;
    std::int64_t ld;
    const float* next;
    std::int64_t next_keys;
  };
  /// Memory of a thread, for the tiles of a work item.
  struct Buffers {
    float *keys, *values;   ///< packed; values by column in the forward pass
    float *staged, *tiles;  ///< for for_each_kv_block(); packed rows or weights of a tile
    float* scores;          ///< [rows, ld]
    // The backward pass only.
    float* keys_by_column;
    float *dscores, *right;     ///< [rows, ld]; the rows of a block as panels
    float *p_tiles, *ds_tiles;  ///< transposed weights and their gradients
    std::int64_t ld;
  };

  std::int64_t size() const { return shape_.head_size; }
  std::int64_t width() const { return std::int64_t{shape_.kv_heads} * shape_.head_size; }
  std::int64_t heads_per_kv() const { return shape_.heads / shape_.kv_heads; }
  /// Rows of a tile, at most.
  std::int64_t tile_rows() const;
  WorkItem work_item(std::size_t sequence, int kv_head, int kv_heads, std::int64_t row,
                     std::int64_t rows) const;
  /// Splits the batch into work items of at most `max_rows` rows; the longest first if they are
  /// few.
  std::vector<WorkItem> work_items(std::int64_t max_rows, int max_kv_heads) const;
  std::vector<WorkItem> forward_items() const;
  QTile tile_of(const WorkItem& item, std::int64_t head, std::int64_t row, std::int64_t rows) const;
  Buffers buffers_for(const WorkItem& item, int worker, bool backward) const;
  bool is_bf16() const { return &for_values_ == &kernels_.gemm_bf16; }
  std::int64_t block_rows(const WorkItem& item) const;
  /// Maximum number of keys, from a whole panel on, that `rows` rows of the item see.
  std::int64_t max_keys(const WorkItem& item, std::int64_t rows) const;

  /// Calls visit(kv) for blocks of the item's keys, with its columns of `from`. The number of keys
  /// is a multiple of `unit` (a panel's width, or 2), except in the last block. Keys that are not
  /// contiguous are copied to `staged` [unit, columns]; an unseen key is zeros.
  template <class Visit>
  void for_each_kv_block(const WorkItem& item, const float* from, std::int64_t unit, float* staged,
                         Visit visit) const;
  /// Packs keys or values as the columns of scores.
  void pack_by_key(const WorkItem& item, const float* from, float* staged, float* to) const;
  /// Packs keys or values as the rows that weights are multiplied by: panels [keys][32 columns].
  void pack_by_column(const WorkItem& item, const float* from, float* staged, float* to) const;
  /// Packs rows of keys with leading dimension `ld` as the columns of scores.
  void pack_keys(const float* rows, std::int64_t ld, std::int64_t keys, float* to) const;
  /// Packs rows as tiles.
  static void pack_rows(const GemmKernel& kernel, const PackArgs& rows, float* to);
  /// scores [rows, keys] = the tile's rows of `left` times keys or values that are packed by key.
  void scores_of_tile(const WorkItem& item, const QTile& tile, const float* left,
                      const float* packed, float* scores, const Buffers& buffers) const;
  /// The tile's rows of `to` [rows, K] = weights [rows, keys] times keys or values that are packed
  /// by column.
  void values_of_tile(const WorkItem& item, const QTile& tile, const float* weights,
                      const float* packed, const Buffers& buffers, float* to,
                      bool accumulate) const;
  /// Prefetches the rows after a block of keys.
  [[gnu::always_inline]] void prefetch(const KvBlock& kv, std::int64_t head) const {
    prefetch_rows_of(kv.next + head * size(), width(), kv.next_keys, size());
  }
  /// Prefetches the rows after a tile in an operand [T, H*K].
  [[gnu::always_inline]] void prefetch(const QTile& tile, const float* of) const {
    prefetch_rows_of(of + tile.pair(tile.rows) * size(), tile.stride * size(), tile.rows, size());
  }

  void forward_item(const WorkItem& item, int worker, float* out, float* lse) const;
  /// Converts scores to unnormalized weights; `inverse` receives the inverses of their sums.
  void softmax(const QTile& tile, float* scores, std::int64_t ld, float* inverse, float* lse) const;
  /// A work item of one row: each block of keys and values is packed, used and discarded, because
  /// reading them takes longest.
  void forward_row(const WorkItem& item, int worker, float* out, float* lse) const;
  void scores_of_row(const WorkItem& item, const Buffers& buffers, float* packed) const;
  void values_of_row(const WorkItem& item, const Buffers& buffers, float* packed, float* out) const;

  /// Calls visit(head, row, rows) for the blocks of a work item, in the order in which they add to
  /// the gradients of keys and values.
  template <class Visit>
  void for_each_block(const WorkItem& item, Visit visit) const;
  QBlock block_of(const WorkItem& item, std::int64_t head, std::int64_t row,
                  std::int64_t rows) const;
  /// The rows of an item that see some of `keys`, with those.
  WorkItem part_of(const WorkItem& item, KeyRange keys) const;
  /// Zeros the gradients of the item's keys and values.
  void clear_gradients(const WorkItem& item, const Gradients& g) const;
  void backward_item(const WorkItem& item, int worker, const Gradients& g) const;
  void backward_keys(const WorkItem& item, int worker, const Gradients& g) const;
  void backward_tile(const WorkItem& item, const QBlock& block, std::size_t tile,
                     const Buffers& buffers, const Gradients& g) const;
  /// Packs the weights of a tile, transposed, beside those of the other tiles of its block.
  void pack_weights(const QBlock& block, std::size_t tile, const float* weights, std::int64_t ld,
                    float* tiles) const;
  /// The rows of `to` for the block's keys += weights^T [keys, rows] times the block's rows of
  /// `right`.
  void add_to_dkv(const WorkItem& item, const QBlock& block, const float* tiles, const float* right,
                  float* panels, float* to) const;

  const Context& context_;
  const Kernels& kernels_;
  const GemmKernel& for_scores_;  ///< products with keys as columns: scores, gradients of weights
  const GemmKernel& for_values_;  ///< the other products
  const Layout& layout_;
  const AttentionShape& shape_;
  SeenKeys seen_;
  AttentionSoftmax softmax_;
  KvRuns runs_;
  const float *q_, *k_, *v_;
};

template <class Visit>
void TiledAttention::for_each_kv_block(const WorkItem& item, const float* from, std::int64_t unit,
                                       float* staged, Visit visit) const {
  const std::int64_t columns = item.kv_heads * size();
  std::int64_t key = item.keys.first,
               staged_keys = item.unseen;  // number of keys, from `key` on, that are staged
  std::fill(staged, staged + staged_keys * columns, 0.0F);
  runs_.for_each(
      item.sequence, {key + staged_keys, item.keys.end}, [&](const KvRun& run, const KvRun& next) {
        for (std::int64_t done = 0, taken = 0; done < run.keys; done += taken) {
          const float* rows = from + (run.row + done) * width() + item.kv_head * size();
          const std::int64_t left = std::min(run.keys - done, panel_nr);
          taken = staged_keys > 0 ? 0 : key + left == item.keys.end ? left : left / unit * unit;
          const bool copied = taken == 0;
          if (copied) {
            taken = std::min(left, unit - staged_keys);
            for (std::int64_t i = 0; i < taken; ++i, ++staged_keys)
              std::copy_n(rows + i * width(), columns, staged + staged_keys * columns);
            if (staged_keys < unit && key + staged_keys < item.keys.end) continue;
          }
          const std::int64_t rest = run.keys - done - taken;
          const float* next_rows =
              rest > 0 ? rows + taken * width() : from + next.row * width() + item.kv_head * size();
          const std::int64_t keys = copied ? std::exchange(staged_keys, 0) : taken;
          visit(KvBlock{key, keys, copied ? staged : rows, copied ? columns : width(), next_rows,
                        std::min(rest > 0 ? rest : next.keys, panel_nr)});
          key += keys;
        }
      });
}

}  // namespace troupe::engine::ops::cpu

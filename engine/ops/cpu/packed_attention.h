// Attention of the fast device from keys and values that are packed once for all rows and heads of
// a part. In bf16 a score is one chain over the head's columns, an output one over the keys, a
// gradient of a key one over heads and their rows, all in pairs. Pairs of keys begin at even ones,
// and those of rows at even places of their sequence. In f32 a score is what dot_product
// (kernels.h) sums, the others are chains, those of a key's gradients over blocks of rows and their
// heads. So neither parts, nor strips, nor pages, nor the rest of the batch change a bit. A row's
// weights for keys that it does not see are zeros, which leave a chain as it is.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/ops/cpu/attention_rows.h"
#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {

/// What attention_backward() is given, all [T, H*K] but lse [T, H].
struct AttentionUpstream {
  const float *out, *lse, *dout;
};
/// And what it makes, dq [T, H*K] and dk, dv [T, G*K].
struct AttentionGradients {
  float *dq, *dk, *dv;
};

/// One call of attention() or attention_backward().
class PackedAttention {
 public:
  PackedAttention(FastDevice& device, const Tensor& q, const KeyValues& kv, const Layout& layout,
                  const AttentionShape& shape, Precision precision);

  /// lse may be nullptr.
  void forward(float* out, float* lse) const;
  void backward(const AttentionUpstream& up, const AttentionGradients& to) const;

 private:
  /// What one thread does: rows of one sequence with the heads of one key/value head, or one row
  /// with those of several.
  struct Part {
    std::size_t sequence;
    int kv_head, kv_heads;
    std::int64_t row, rows;
    Keys keys;            ///< that any row sees, from an even one on
    std::int64_t unseen;  ///< 1 where no row sees that even one
    std::int64_t panels() const { return panels_width(keys.count()); }
  };
  /// (row, head) pairs first, first + stride, ... that are computed together: some rows of one
  /// head, or all heads of one row.
  struct Strip {
    std::int64_t first, rows, stride;
    Keys keys;  ///< that any of them sees, from a whole panel of the part on
    std::int64_t pair(std::int64_t i) const { return first + i * stride; }
  };
  /// Strips of one head, whose gradients of keys are products of their own.
  struct Block {
    Strip all;
    std::vector<Strip> strips;
    std::vector<std::int64_t> ends;  ///< up to which key a strip's weights are there, zeros at last
  };
  /// Keys of a part whose rows are `apart`; and where those behind them lie, width() apart.
  struct Piece {
    std::int64_t key, keys;
    const float* rows;
    std::int64_t apart;
    const float* behind;
    std::int64_t keys_behind;
  };
  /// Of a thread, for strips of a part.
  struct Memory {
    float *keys, *values;    ///< packed, values by column on the way forward
    float *staged, *tiles;   ///< what for_each_piece() wants; rows or weights of a strip as tiles
    float* scores;           ///< [rows, pitch]
    float* keys_by_column;   ///< this and the others on the way back
    float *dscores, *right;  ///< [rows, pitch]; the rows of a block as panels
    float *p_tiles, *ds_tiles;
    std::int64_t pitch;
  };

  std::int64_t size() const { return shape_.head_size; }
  std::int64_t width() const { return std::int64_t{shape_.kv_heads} * shape_.head_size; }
  std::int64_t share() const { return shape_.heads / shape_.kv_heads; }
  /// Of a strip, at most.
  std::int64_t strip_rows() const;
  Part part_of(std::size_t sequence, int kv_head, int kv_heads, std::int64_t row,
               std::int64_t rows) const;
  /// Of at most `most` rows; the longest first where they are few.
  std::vector<Part> parts(std::int64_t most, int most_kv_heads) const;
  std::vector<Part> parts_forward() const;
  Strip strip_of(const Part& part, std::int64_t head, std::int64_t row, std::int64_t rows) const;
  Memory memory_for(const Part& part, int worker, bool backward) const;
  bool in_pairs() const { return &with_ == &kernels_.pairs; }
  std::int64_t block_rows(const Part& part) const;
  /// Keys that so many rows of the part see from a whole panel on, at most.
  std::int64_t most_keys(const Part& part, std::int64_t rows) const;

  /// visit(piece) for the part's keys, its columns of `from`: pieces of whole panels where `least`
  /// is a panel's width, of whole pairs where it is 2, but for the last one. Keys that do not lie
  /// together are copied to `staged` [least, columns]; an unseen one is zeros.
  template <class Visit>
  void for_each_piece(const Part& part, const float* from, std::int64_t least, float* staged,
                      Visit visit) const;
  /// Keys or values as the columns of scores.
  void pack_by_key(const Part& part, const float* from, float* staged, float* to) const;
  /// As the rows that weights are multiplied by: panels [keys][32 columns].
  void pack_by_column(const Part& part, const float* from, float* staged, float* to) const;
  /// Rows of keys, which are `apart`, as the columns of scores.
  void pack_keys(const float* rows, std::int64_t apart, std::int64_t keys, float* to) const;
  /// `count` rows of `depth` values, `apart`, as tiles.
  void pack_tiles(const Panels& with, const float* from, std::int64_t apart, std::int64_t count,
                  std::int64_t depth, float* to) const;
  /// scores [rows, keys] = the strip's rows of `left` against keys or values that are packed by
  /// key.
  void against_keys(const Part& part, const Strip& strip, const float* left, const float* packed,
                    float* scores, const Memory& memory) const;
  /// to's rows of the strip [rows, K] = weights [rows, keys] against keys or values that are packed
  /// by column.
  void over_keys(const Part& part, const Strip& strip, const float* weights, const float* packed,
                 const Memory& memory, float* to) const;
  /// Has those behind a piece fetched.
  [[gnu::always_inline]] void fetch(const Piece& piece, std::int64_t head) const {
    fetch_rows(piece.behind + head * size(), width(), piece.keys_behind, size());
  }
  /// Those behind a strip in an operand [T, H*K].
  [[gnu::always_inline]] void fetch(const Strip& strip, const float* of) const {
    fetch_rows(of + strip.pair(strip.rows) * size(), strip.stride * size(), strip.rows, size());
  }

  void forward_part(const Part& part, int worker, float* out, float* lse) const;
  /// Weights, whose sums' inverses are left in `inverse`.
  void weigh(const Strip& strip, float* scores, std::int64_t pitch, float* inverse,
             float* lse) const;
  /// A part of one row: each piece of keys and values is packed, used and forgotten, as reading
  /// them takes longest.
  void forward_row(const Part& part, int worker, float* out, float* lse) const;
  void scores_of_row(const Part& part, const Memory& memory, float* packed) const;
  void values_of_row(const Part& part, const Memory& memory, float* packed, float* out) const;

  /// visit(head, row, rows) for the blocks of a part, in the order in which they add to the
  /// gradients of keys and values.
  template <class Visit>
  void for_each_block(const Part& part, Visit visit) const;
  Block block_of(const Part& part, std::int64_t head, std::int64_t row, std::int64_t rows) const;
  void backward_part(const Part& part, int worker, const AttentionUpstream& up,
                     const AttentionGradients& to) const;
  void backward_strip(const Part& part, const Block& block, std::size_t strip, const Memory& memory,
                      const AttentionUpstream& up, float* dq) const;
  /// A strip's weights as tiles of keys, beside those of the block's other strips.
  void pack_weights(const Block& block, std::size_t strip, const float* weights, std::int64_t pitch,
                    float* tiles) const;
  /// to's rows of the block's keys += weights^T [keys, rows] against the block's rows of `right`.
  void over_rows(const Part& part, const Block& block, const float* tiles, const float* right,
                 float* panels, float* to) const;

  FastDevice& device_;
  const Kernels& kernels_;
  const Panels &for_scores_,
      &with_;  ///< products with keys as columns (scores, slopes of weights), and the others
  const Layout& layout_;
  const AttentionShape& shape_;
  AttentionRows rows_;
  KeyRuns runs_;
  const float *q_, *k_, *v_;
};

template <class Visit>
void PackedAttention::for_each_piece(const Part& part, const float* from, std::int64_t least,
                                     float* staged, Visit visit) const {
  const std::int64_t columns = part.kv_heads * size();
  std::int64_t key = part.keys.first, waiting = part.unseen;  // keys from `key` on that are staged
  std::fill(staged, staged + waiting * columns, 0.0F);
  runs_.for_each(
      part.sequence, {key + waiting, part.keys.end}, [&](const KeyRun& run, const KeyRun& next) {
        for (std::int64_t done = 0, taken = 0; done < run.keys; done += taken) {
          const float* rows = from + (run.row + done) * width() + part.kv_head * size();
          const std::int64_t left = std::min(run.keys - done, panel_columns);
          taken = waiting > 0 ? 0 : key + left == part.keys.end ? left : left / least * least;
          const bool copied = taken == 0;
          if (copied) {
            taken = std::min(left, least - waiting);
            for (std::int64_t i = 0; i < taken; ++i, ++waiting)
              std::copy_n(rows + i * width(), columns, staged + waiting * columns);
            if (waiting < least && key + waiting < part.keys.end) continue;
          }
          const std::int64_t rest = run.keys - done - taken;
          const float* behind =
              rest > 0 ? rows + taken * width() : from + next.row * width() + part.kv_head * size();
          const std::int64_t keys = copied ? std::exchange(waiting, 0) : taken;
          visit(Piece{key, keys, copied ? staged : rows, copied ? columns : width(), behind,
                      std::min(rest > 0 ? rest : next.keys, panel_columns)});
          key += keys;
        }
      });
}

}  // namespace troupe::engine::ops

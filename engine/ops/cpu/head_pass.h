// The vocabulary head of the fast device in blocks of logits: each is made, read and forgotten
// while it lies in a thread's own cache; where logits are kept, that is a copy past the caches. The
// way back goes through groups of columns: a block's gradients are the left operand of the inputs'
// own at once, and, packed in the other order, of the weight's once all blocks of the group are
// there.
#pragma once

#include <algorithm>
#include <array>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {

/// Columns of a block. Sums of a softmax are made block by block and joined in their order, so this
/// is part of the order of summation.
inline constexpr std::int64_t head_block = 896;
static_assert(head_columns == head_block,
              "a group is one block wide: inputs' gradients add up its columns in order");
constexpr std::int64_t head_blocks(std::int64_t vocabulary) {
  return (vocabulary + head_block - 1) / head_block;
}

/// The one definition of a token's log-probability, for training and for sampling.
struct RowResult {
  float lse, entropy;
  explicit RowResult(const SoftmaxSums& sums);
  float logp(float logit, float inv_temperature) const { return logit * inv_temperature - lse; }
};
/// The sums over a row from those over its blocks.
SoftmaxSums joined(std::span<const SoftmaxSums> blocks);

/// What head_backward() is given of each row of hidden. dentropy and entropy may be nullptr.
struct HeadUpstream {
  const float *lse, *dlogp, *dentropy, *entropy;
};

/// What head() finds of each row. entropy may be nullptr.
struct HeadScores {
  float *logp, *lse, *entropy;
};
/// What head_backward() finds. dweight may be absent, adapter nullptr. accumulate: dweight is
/// added, else assigned.
struct HeadGradients {
  Tensor &dhidden, &dweight;
  HeadAdapter* adapter;
  bool accumulate;
};

/// One call of head(), head_backward() or head_through().
class HeadPass {
 public:
  HeadPass(FastDevice& device, const Tensor& hidden, const Tensor& weight,
           std::span<const std::int32_t> targets, const HeadScale& scale, Precision precision,
           const HeadAdapter* adapter);

  /// Rows that are not skipped.
  std::int64_t rows() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Of kept logits: of unit_ rows at a time those of a block's columns, [rows, pitch_], before the
  /// next columns'.
  std::int64_t kept_logits(std::int64_t rows) const { return rows * blocks_ * pitch_; }
  /// The first rows, whose kept logits are so many at most.
  std::int64_t rows_within(std::int64_t logits) const {
    const std::int64_t most = logits / kept_logits(1);
    return most < rows() ? most / unit_ * unit_ : rows();
  }
  /// kept [kept_logits(kept_rows)]: of the first rows.
  void forward(const HeadScores& to, float* kept, std::int64_t kept_rows);
  /// kept: what forward() left there. dweight may be absent.
  void backward(const HeadUpstream& up, const float* kept, std::int64_t kept_rows,
                const HeadGradients& to);
  /// Both, from logits that are made once. up.lse and up.entropy are what `to` of the scores says.
  void through(const HeadScores& scores, const HeadUpstream& up, const HeadGradients& to);

 private:
  /// Of the rows that are not skipped. height: of its blocks.
  struct Chunk {
    std::int64_t begin, rows, height;
  };
  struct Block {
    std::int64_t row, rows, column, columns;
  };
  /// Of a thread: for a block's logits, and for their gradients as tiles.
  struct Room {
    float *logits, *tiles;
    int worker;
  };
  /// Each factor's weight of the columns from `column` on, packed for logits.
  struct Weights {
    std::int64_t column = -1;
    std::array<const float*, 2> of{};
  };
  /// One of the two products that logits are the sum of: inputs [T, width] by weight [V, width].
  struct Factor {
    const float *inputs, *weight;
    std::int64_t width, steps;
    FastDevice::HeadScratch& scratch;
  };
  /// Of the vocabulary.
  struct Columns {
    std::int64_t begin, count;
  };

  std::int32_t token(const Chunk& chunk, std::int64_t row) const {
    return rows_[static_cast<std::size_t>(chunk.begin + row)];
  }
  /// The height of the blocks of so many rows: the last of them shall not leave threads without
  /// work.
  std::int64_t height_for(std::int64_t rows) const;
  /// visit(chunk) for chunks of about the same size of rows [begin, end), in order, all but the
  /// last whole tiles.
  template <class Visit>
  void for_each_chunk(std::int64_t begin, std::int64_t end, std::int64_t most_rows,
                      Visit visit) const;
  /// visit(chunk, kept) for chunks of the first rows, with where their kept logits are, then for
  /// those of the others, with nullptr.
  template <class Logits, class Visit>
  void for_each_kept_chunk(Logits* kept, std::int64_t kept_rows, std::int64_t most_rows,
                           Visit visit) const;
  /// visit(columns) for head_columns at a time.
  template <class Visit>
  void for_each_group(Visit visit) const;
  /// visit(block, room) for the blocks of some columns of a chunk's logits, on all threads.
  template <class Visit>
  void for_each_block(const Chunk& chunk, const Columns& columns, Visit visit);
  /// Where the kept logits of a row's block of columns are within its chunk's: wherever chunks and
  /// blocks begin.
  std::int64_t place(const Chunk& chunk, std::int64_t row, std::int64_t column) const {
    const std::int64_t first = row / unit_ * unit_;
    return kept_logits(first) +
           (column / head_block * std::min(unit_, chunk.rows - first) + row - first) * pitch_;
  }
  void gather_inputs(const Chunk& chunk);
  /// For logits.
  void pack_inputs(const Chunk& chunk);
  /// For the gradients of weights that are wanted.
  void pack_inputs_across(const Chunk& chunk, const HeadGradients& to);
  /// A thread packs the weights of a block's columns for itself, in its own cache, where others
  /// have blocks of other columns.
  const Weights& own_weights(const Block& block, int worker);
  /// A group's, by all threads.
  Weights pack_weights(const Columns& group);
  /// The weights of a span of groups, for dinputs.
  void need_weights_below(const Columns& group);
  /// z [rows, pitch_] becomes the logits of a block.
  void make_logits(const Block& block, const Weights& weights, float* z) const;
  /// `kept` here and below: where the logits of the chunk go, or are, or nullptr.
  void forward_chunk(const Chunk& chunk, const HeadScores& to, float* kept);
  void forward_block(const Chunk& chunk, const Block& block, const float* z, bool weighted);
  void keep(const Chunk& chunk, const Block& block, const float* z, float* kept) const;
  void finish_rows(const Chunk& chunk, const HeadScores& to) const;
  void backward_chunk(const Chunk& chunk, const HeadUpstream& up, const float* kept,
                      const HeadGradients& to);
  /// z becomes the gradients of a block's logits, which are there or kept.
  void differentiate(const Chunk& chunk, const Block& block, const HeadUpstream& up,
                     const float* kept, float* z) const;
  /// Where a factor's weight's gradient goes, or nullptr.
  static float* dweight_of(std::size_t factor, const HeadGradients& to);
  /// A block of gradients, as part of the left operand of the gradients of its columns' weights.
  void pack_for_weights(const Chunk& chunk, const Block& block, const float* z) const;
  /// dinputs of its rows += gradients of a block, with room for them as tiles.
  void add_to_inputs(const Block& block, const Room& room) const;
  void add_to_weights(const Chunk& chunk, const Columns& group, const HeadGradients& to);
  void scatter_slopes(const Chunk& chunk, const Factor& factor, Tensor& dinputs) const;

  FastDevice& device_;
  const Kernels& kernels_;
  const Panels &for_logits_, &with_;  ///< products of logits, and of their gradients
  std::span<const std::int32_t> targets_;
  HeadScale scale_;
  std::int64_t vocabulary_, blocks_;
  std::int64_t
      pitch_;  ///< of a block's rows: an odd number of lines, or they would share a cache's sets
  std::int64_t
      vocabulary_tile_;  ///< rows of a tile of the transposed gradients: a divisor of head_block
  std::int64_t unit_;  ///< of a block's height: whole tiles of logits and whole words of transposed
                       ///< gradients
  std::vector<std::int32_t> rows_;    ///< that are not skipped
  std::vector<Factor> factors_;       ///< the head's own, and its adapter's
  std::int64_t span_ = 0;             ///< columns whose weights are packed below at a time
  std::int64_t packed_below_ = -1;    ///< where the span begins that is
  std::vector<Weights> own_weights_;  ///< one a thread
  std::vector<SoftmaxSums> sums_;     ///< [chunk's rows, blocks]
  std::vector<float> target_logit_;   ///< [chunk's rows]
  float* by_column_ = nullptr;        ///< nullptr: no weight's gradient is wanted
};

template <class Visit>
void HeadPass::for_each_group(Visit visit) const {
  for (std::int64_t begin = 0; begin < vocabulary_; begin += head_columns)
    visit(Columns{begin, std::min(head_columns, vocabulary_ - begin)});
}

template <class Visit>
void HeadPass::for_each_chunk(std::int64_t begin, std::int64_t end, std::int64_t most_rows,
                              Visit visit) const {
  constexpr std::int64_t forward_rows = 8192;
  if (begin == end) return;
  const std::int64_t most = std::clamp(most_rows, unit_, forward_rows) / unit_ * unit_;
  const std::int64_t chunks = (end - begin + most - 1) / most,
                     even = (end - begin + chunks - 1) / chunks;
  const std::int64_t whole = (even + unit_ - 1) / unit_ * unit_;
  for (; begin < end; begin += whole) {
    const std::int64_t count = std::min(whole, end - begin);
    visit(Chunk{begin, count, height_for(count)});
  }
}

template <class Logits, class Visit>
void HeadPass::for_each_kept_chunk(Logits* kept, std::int64_t kept_rows, std::int64_t most_rows,
                                   Visit visit) const {
  for_each_chunk(0, kept_rows, most_rows,
                 [&](const Chunk& chunk) { visit(chunk, kept + kept_logits(chunk.begin)); });
  for_each_chunk(kept_rows, rows(), most_rows,
                 [&](const Chunk& chunk) { visit(chunk, static_cast<Logits*>(nullptr)); });
}

template <class Visit>
void HeadPass::for_each_block(const Chunk& chunk, const Columns& columns, Visit visit) {
  const std::int64_t height = chunk.height, down = (chunk.rows + height - 1) / height;
  device_.spread(down * head_blocks(columns.count), chunk.rows * columns.count * factors_[0].width,
                 [&](std::int64_t item, int worker) {
                   const std::int64_t row = item % down * height,
                                      column = columns.begin + item / down * head_block;
                   const Block block{row, std::min(height, chunk.rows - row), column,
                                     std::min(head_block, columns.begin + columns.count - column)};
                   float* logits = device_.score_scratch_[static_cast<std::size_t>(worker)].need(
                       height * (pitch_ + head_block));
                   visit(block, Room{logits, logits + height * pitch_, worker});
                 });
}

}  // namespace troupe::engine::ops

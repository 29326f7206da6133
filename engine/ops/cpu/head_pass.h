// The vocabulary head of the fast device in blocks of logits: each is made, read and forgotten while it lies in a thread's own cache. The
// way back goes through groups of columns, so that the gradients of their logits, packed in two orders, do not leave the shared cache
// before both products have read them.
#pragma once

#include <algorithm>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {

/// Columns of a block. Sums of a softmax are made block by block and joined in their order, so this is part of the order of summation.
inline constexpr std::int64_t head_block = 896;
static_assert(head_columns % head_block == 0, "a group is whole blocks");
constexpr std::int64_t head_blocks(std::int64_t vocabulary) { return (vocabulary + head_block - 1) / head_block; }

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
/// What head_backward() finds. dweight may be absent, adapter nullptr.
struct HeadGradients {
  Tensor &dhidden, &dweight;
  HeadAdapter* adapter;
};

/// One call of head(), head_backward() or head_through().
class HeadPass {
 public:
  HeadPass(FastDevice& device, const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets, const HeadScale& scale,
           Precision precision, const HeadAdapter* adapter);

  /// Rows that are not skipped.
  std::int64_t rows() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Of kept logits, block by block, each [its rows, pitch_].
  std::int64_t kept_logits(std::int64_t rows) const { return rows * blocks_ * pitch_; }
  /// kept [kept_logits(rows())] may be nullptr.
  void forward(const HeadScores& to, float* kept);
  /// kept: what forward() left there, or nullptr. dweight may be absent.
  void backward(const HeadUpstream& up, const float* kept, const HeadGradients& to);
  /// Both, from logits that are made once. up.lse and up.entropy are what `to` of the scores says.
  void through(const HeadScores& scores, const HeadUpstream& up, const HeadGradients& to);

 private:
  /// Of the rows that are not skipped.
  struct Chunk {
    std::int64_t begin, rows;
  };
  struct Block {
    std::int64_t row, rows, column, columns;
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

  std::int32_t token(const Chunk& chunk, std::int64_t row) const { return rows_[static_cast<std::size_t>(chunk.begin + row)]; }
  /// visit(chunk) for chunks of about the same size, in order, all but the last whole blocks.
  template <class Visit>
  void for_each_chunk(std::int64_t most_rows, Visit visit) const;
  /// visit(columns) for `size` columns at a time.
  template <class Visit>
  void for_each_group(std::int64_t size, Visit visit) const;
  /// visit(block, room for its logits) for the blocks of some columns of a chunk's logits, on all threads.
  template <class Visit>
  void for_each_block(const Chunk& chunk, const Columns& columns, Visit visit);
  /// Where a block's logits are within its chunk's.
  std::int64_t place(const Block& block) const { return kept_logits(block.row) + block.column / head_block * pitch_ * block.rows; }
  void gather_inputs(const Chunk& chunk);
  /// For logits.
  void pack_inputs(const Chunk& chunk);
  /// For dweight.
  void pack_inputs_across(const Chunk& chunk);
  /// The span's weights that a column lies in, for logits and for dinputs.
  void need_weights(std::int64_t column);
  void need_weights_below(std::int64_t column);
  Columns span_of(std::int64_t column) const;
  /// z [rows, pitch_] becomes the logits of a block.
  void make_logits(const Block& block, float* z) const;
  /// `kept` here and below: where the logits of the chunk go, or are, or nullptr.
  void forward_chunk(const Chunk& chunk, const HeadScores& to, float* kept);
  void forward_block(const Chunk& chunk, const Block& block, const float* z, bool weighted);
  void finish_rows(const Chunk& chunk, const HeadScores& to) const;
  void backward_chunk(const Chunk& chunk, const HeadUpstream& up, const float* kept, const HeadGradients& to);
  /// z becomes the gradients of a block's logits, which may be there or elsewhere.
  void differentiate(const Chunk& chunk, const Block& block, const HeadUpstream& up, const float* logits, float* z) const;
  /// A block of gradients as the left operand of both products of its group's slopes.
  void pack_gradients(const Chunk& chunk, const Columns& group, const Block& block, const float* z) const;
  void slopes(const Chunk& chunk, const Columns& group, const HeadGradients& to);
  void scatter_slopes(const Chunk& chunk, const Factor& factor, Tensor& dinputs) const;

  FastDevice& device_;
  const Kernels& kernels_;
  const Panels &for_logits_, &with_;  ///< products of logits, and of their gradients
  std::span<const std::int32_t> targets_;
  HeadScale scale_;
  std::int64_t vocabulary_, blocks_;
  std::int64_t pitch_;                            ///< of a block's rows: an odd number of lines, or they would share a cache's sets
  std::int64_t vocabulary_tile_;                  ///< rows of a tile of the transposed gradients: a divisor of head_block
  std::int64_t block_height_;                     ///< whole tiles of both products, and whole words of transposed ones
  std::vector<std::int32_t> rows_;                ///< that are not skipped
  std::vector<Factor> factors_;                   ///< the head's own, and its adapter's
  std::int64_t span_ = 0;                         ///< columns whose weights are packed at a time
  std::int64_t packed_ = -1, packed_below_ = -1;  ///< which span's are
  std::vector<SoftmaxSums> sums_;                 ///< [chunk's rows, blocks]
  std::vector<float> target_logit_;               ///< [chunk's rows]
  float *by_row_ = nullptr, *by_column_ = nullptr;
};

template <class Visit>
void HeadPass::for_each_group(std::int64_t size, Visit visit) const {
  for (std::int64_t begin = 0; begin < vocabulary_; begin += size) visit(Columns{begin, std::min(size, vocabulary_ - begin)});
}

template <class Visit>
void HeadPass::for_each_chunk(std::int64_t most_rows, Visit visit) const {
  constexpr std::int64_t forward_rows = 8192;
  if (rows() == 0) return;
  const std::int64_t most = std::clamp(most_rows, block_height_, forward_rows) / block_height_ * block_height_;
  const std::int64_t chunks = (rows() + most - 1) / most, even = (rows() + chunks - 1) / chunks;
  const std::int64_t whole = (even + block_height_ - 1) / block_height_ * block_height_;
  for (std::int64_t begin = 0; begin < rows(); begin += whole) visit(Chunk{begin, std::min(whole, rows() - begin)});
}

template <class Visit>
void HeadPass::for_each_block(const Chunk& chunk, const Columns& columns, Visit visit) {
  const std::int64_t down = (chunk.rows + block_height_ - 1) / block_height_;
  device_.spread(down * head_blocks(columns.count), chunk.rows * columns.count * factors_[0].width, [&](std::int64_t item, int worker) {
    const std::int64_t row = item % down * block_height_, column = columns.begin + item / down * head_block;
    const Block block{row, std::min(block_height_, chunk.rows - row), column, std::min(head_block, columns.begin + columns.count - column)};
    visit(block, device_.score_scratch_[static_cast<std::size_t>(worker)].need(block_height_ * pitch_));
  });
}

}  // namespace troupe::engine::ops

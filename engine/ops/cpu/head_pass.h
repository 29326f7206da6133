// The vocabulary head of the fast device in blocks of logits: each is made, read and forgotten while it lies in a thread's own cache.
#pragma once

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {

/// Columns of a block. Sums of a softmax are made block by block and joined in their order, so this is part of the order of summation.
inline constexpr std::int64_t head_block = 896;
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
  /// kept [rows(), V] may be nullptr.
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
    Scratch &gathered, &left, &right, &below;
  };

  /// bf16: logits too are products of packed operands.
  bool in_pairs() const { return &with_ == &kernels_.pairs; }
  std::int32_t token(const Chunk& chunk, std::int64_t row) const { return rows_[static_cast<std::size_t>(chunk.begin + row)]; }
  /// visit(chunk) for chunks of about the same size, in order.
  template <class Visit>
  void for_each_chunk(Visit visit);
  /// visit(block, z, memory) for the blocks of a chunk's logits, on all threads.
  template <class Visit>
  void for_each_block(const Chunk& chunk, Visit visit);
  void gather_inputs(const Chunk& chunk);
  /// For logits; in f32 they take operands as they lie.
  void pack_inputs(const Chunk& chunk);
  void pack_weights();
  /// For dinputs.
  void pack_weights_below();
  /// z [rows, head_block] becomes the logits of a block, copied from the chunk's, or made; `memory` is a kernel's scratch.
  void make_logits(const Block& block, const float* kept, float* z, float* memory) const;
  /// `kept` [chunk's rows, V] here and below: where the logits of the chunk go, or are, or nullptr.
  void forward_chunk(const Chunk& chunk, const HeadScores& to, float* kept);
  void forward_block(const Chunk& chunk, const Block& block, float* z, bool weighted, float* kept);
  void finish_rows(const Chunk& chunk, const HeadScores& to) const;
  void backward_chunk(const Chunk& chunk, const HeadUpstream& up, const float* kept, const HeadGradients& to);
  /// z becomes the gradients of the logits, and is packed as the left operand of both products of its slopes.
  void backward_block(const Chunk& chunk, const Block& block, const HeadUpstream& up, float* z);
  void slopes(const Chunk& chunk, Factor& factor, Tensor& dinputs, Tensor& dweight);

  FastDevice& device_;
  const Kernels& kernels_;
  const Panels& with_;
  std::span<const std::int32_t> targets_;
  HeadScale scale_;
  std::int64_t vocabulary_, blocks_;
  std::int64_t vocabulary_tile_;     ///< rows of a tile of the transposed gradients: a divisor of head_block
  std::vector<std::int32_t> rows_;   ///< that are not skipped
  std::vector<Factor> factors_;      ///< the head's own, and its adapter's
  std::vector<SoftmaxSums> sums_;    ///< [chunk's rows, blocks]
  std::vector<float> target_logit_;  ///< [chunk's rows]
  float *by_row_ = nullptr, *by_column_ = nullptr;
};

}  // namespace troupe::engine::ops

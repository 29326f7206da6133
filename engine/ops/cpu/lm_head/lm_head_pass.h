// The LM head in blocks of logits: each block is computed, read and discarded while it is in a
// thread's own cache; kept logits are a copy written past the caches. The backward pass goes
// through groups of columns: the gradients of a block are first the left operand of dinputs, and,
// packed transposed, of dweight once all blocks of the group are done.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "engine/ops/cpu/context/context.h"
#include "engine/ops/cpu/context/options.h"
#include "engine/ops/cpu/lm_head/vocab_softmax.h"

namespace troupe::engine::ops::cpu {

static_assert(lm_head_columns == lm_head_block,
              "a group is one block wide: gradients of inputs add its columns in order");

/// Limits of the LM head, and where its passes take memory from.
struct LmHeadLimits {
  LmHeadLimits(std::shared_ptr<BlockPool> pool, const CpuOptions& options)
      : blocks(std::move(pool)),
        max_logits(options.max_logits),
        max_kept_logits(options.max_kept_logits) {}

  std::shared_ptr<BlockPool> blocks;
  std::int64_t max_logits, max_kept_logits;
};

/// Memory of one of the two products whose sum the logits are: weight.hidden, and up.down.
struct LmHeadFactorMemory {
  explicit LmHeadFactorMemory(const std::shared_ptr<BlockPool>& blocks)
      : gathered(blocks),
        inputs_for_logits(blocks),
        weight_for_logits(blocks),
        weight_for_dinputs(blocks),
        inputs_for_dweight(blocks),
        dinputs(blocks) {}
  Scratch gathered;  ///< rows of the inputs that are not skipped
  Scratch inputs_for_logits, weight_for_logits, weight_for_dinputs, inputs_for_dweight;  // packed
  Scratch dinputs;
};

/// Upstream gradients and saved results, [T] each. dentropy and entropy may be nullptr.
struct LmHeadUpstream {
  const float *lse, *dlogp, *dentropy, *entropy;
};
/// Results of the forward pass, [T] each. entropy may be nullptr, and so may both over all columns.
struct LmHeadScores {
  float *logp, *lse, *entropy, *whole_lse, *whole_entropy;
};

/// One call of head(), head_backward() or head_forward_backward(). Its memory, up to max_logits
/// floats and more, is free for the layers' passes afterwards.
class LmHeadPass {
 public:
  LmHeadPass(const Context& context, const LmHeadLimits& limits, const HeadInputs& in);

  /// Rows that are not skipped.
  std::int64_t rows() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Number of kept logits of `rows` rows. They are stored by groups of unit_ rows and within a
  /// group by blocks of columns, [rows, ld_].
  std::int64_t kept_logits(std::int64_t rows) const { return rows * blocks_ * ld_; }
  /// Number of rows, from the first on, whose kept logits fit in `logits`.
  std::int64_t rows_within(std::int64_t logits) const {
    const std::int64_t maximum = logits / kept_logits(1);
    return maximum < rows() ? maximum / unit_ * unit_ : rows();
  }
  /// kept [kept_logits(kept_rows)] receives the logits of the first rows.
  void forward(const LmHeadScores& to, float* kept, std::int64_t kept_rows);
  /// kept: as written by forward().
  void backward(const LmHeadUpstream& up, const float* kept, std::int64_t kept_rows,
                const HeadGradients& to);
  /// Runs both passes, from logits that are computed once. up.lse and up.entropy are those of
  /// `scores`.
  void forward_backward(const LmHeadScores& scores, const LmHeadUpstream& up,
                        const HeadGradients& to);

 private:
  /// A range of the rows that are not skipped. height: rows of its blocks.
  struct Chunk {
    std::int64_t begin, rows, height;
  };
  struct Block {
    std::int64_t row, rows, column, columns;
  };
  /// Memory of a thread: logits of a block, and their gradients as tiles.
  struct Buffers {
    float *logits, *tiles;
    int worker;
  };
  /// The weight of each factor for the columns from `column` on, packed for logits.
  struct Weights {
    std::int64_t column = -1;
    std::array<const float*, 2> of{};
  };
  /// One of the products whose sum the logits are: inputs [T, width] times weight [V, width].
  struct Factor {
    const float *inputs, *weight;
    std::int64_t width, k_groups;
    LmHeadFactorMemory memory;
  };
  /// A range of the vocabulary.
  struct VocabRange {
    std::int64_t begin, count;
  };

  std::int32_t token(const Chunk& chunk, std::int64_t row) const {
    return rows_[static_cast<std::size_t>(chunk.begin + row)];
  }
  /// Returns the height of the blocks of `rows` rows. The last blocks should not leave threads
  /// idle.
  std::int64_t height_for(std::int64_t rows) const;
  /// Calls visit(chunk) for chunks of rows [begin, end), in order and of about equal size. All but
  /// the last consist of whole tiles.
  template <class Visit>
  void for_each_chunk(std::int64_t begin, std::int64_t end, std::int64_t max_rows,
                      Visit visit) const;
  /// Calls visit(chunk, kept) for chunks of the first rows with their kept logits, then for chunks
  /// of the other rows with nullptr.
  template <class Logits, class Visit>
  void for_each_kept_chunk(Logits* kept, std::int64_t kept_rows, std::int64_t max_rows,
                           Visit visit) const;
  /// Calls visit(columns) for lm_head_columns at a time.
  template <class Visit>
  void for_each_group(Visit visit) const;
  /// Calls visit(block, buffers) for the blocks of some columns of a chunk, on all threads.
  template <class Visit>
  void for_each_block(const Chunk& chunk, const VocabRange& columns, Visit visit);
  /// Returns the offset of a row's block of columns within the kept logits of its chunk. Does not
  /// depend on the division into chunks and blocks.
  std::int64_t offset_of_kept(const Chunk& chunk, std::int64_t row, std::int64_t column) const {
    const std::int64_t first = row / unit_ * unit_;
    return kept_logits(first) +
           (column / lm_head_block * std::min(unit_, chunk.rows - first) + row - first) * ld_;
  }
  void gather_inputs(const Chunk& chunk);
  void pack_inputs(const Chunk& chunk);
  /// Packs inputs for the gradients of weights that are not frozen.
  void pack_inputs_for_dweight(const Chunk& chunk, const HeadGradients& to);
  /// Returns the weights of a block's columns, packed by the thread for itself, in its own cache.
  const Weights& own_weights(const Block& block, int worker);
  /// Packs the weights of a group on all threads.
  Weights pack_weights(const VocabRange& group);
  /// Packs the weights of a span of groups for dinputs, unless they are packed already.
  void pack_weights_for_dinputs(const VocabRange& group);
  /// Computes the logits z [rows, ld_] of a block.
  void make_logits(const Block& block, const Weights& weights, float* z) const;
  /// `kept` here and below: kept logits of the chunk, or nullptr.
  void forward_chunk(const Chunk& chunk, const LmHeadScores& to, float* kept);
  void forward_block(const Chunk& chunk, const Block& block, const float* z,
                     const LmHeadScores& to);
  void keep(const Chunk& chunk, const Block& block, const float* z, float* kept) const;
  void finish_rows(const Chunk& chunk, const LmHeadScores& to) const;
  void backward_chunk(const Chunk& chunk, const LmHeadUpstream& up, const float* kept,
                      const HeadGradients& to);
  /// Computes the gradients z of a block's logits, from z itself or from kept logits.
  void logits_backward(const Chunk& chunk, const Block& block, const LmHeadUpstream& up,
                       const float* kept, float* z) const;
  /// Returns the gradient of a factor's weight, or nullptr.
  static float* dweight_of(std::size_t factor, const HeadGradients& to);
  /// Packs a block of gradients transposed, as part of the left operand of dweight.
  void pack_dlogits(const Chunk& chunk, const Block& block, const float* z) const;
  /// Adds the gradients of a block to dinputs of its rows.
  void add_to_inputs(const Block& block, const Buffers& buffers) const;
  void add_to_weights(const Chunk& chunk, const VocabRange& group, const HeadGradients& to);
  void scatter_dinputs(const Chunk& chunk, const Factor& factor, Tensor& dinputs) const;

  const Context& context_;
  const LmHeadLimits& limits_;
  const Kernels& kernels_;
  const GemmKernel &for_logits_, &for_gradients_;
  TargetRows of_;  ///< rows of the inputs
  HeadScale scale_;
  std::int64_t vocabulary_, blocks_;
  /// Leading dimension of a block: an odd number of cache lines, so that rows map to different
  /// cache sets.
  std::int64_t ld_;
  /// Rows of a tile of the transposed gradients: a divisor of lm_head_block.
  std::int64_t vocabulary_tile_;
  /// Unit of a block's height: whole tiles of logits and whole k groups of transposed gradients.
  std::int64_t unit_;
  std::vector<std::int32_t> rows_;  ///< rows that are not skipped
  std::vector<Factor> factors_;     ///< the head itself, and its adapter
  Scratch dlogits_;                 ///< gradients of logits, packed transposed
  Scratch kept_;                    ///< logits of a chunk of forward_backward()
  std::int64_t span_ = 0;           ///< columns whose weights are packed for dinputs at a time
  std::int64_t packed_for_dinputs_ = -1;  ///< first column of the span that is packed
  std::vector<Weights> own_weights_;      ///< one per thread
  std::vector<SoftmaxSums> sums_;         ///< [rows of the chunk, blocks]
  std::vector<SoftmaxSums> whole_sums_;   ///< the same over all columns, where they are asked
  std::vector<float> target_logit_;       ///< [rows of the chunk]
  float* dlogits_by_column_ = nullptr;    ///< nullptr: all weights are frozen
};

template <class Visit>
void LmHeadPass::for_each_group(Visit visit) const {
  for (std::int64_t begin = 0; begin < vocabulary_; begin += lm_head_columns)
    visit(VocabRange{begin, std::min(lm_head_columns, vocabulary_ - begin)});
}

template <class Visit>
void LmHeadPass::for_each_chunk(std::int64_t begin, std::int64_t end, std::int64_t max_rows,
                                Visit visit) const {
  constexpr std::int64_t forward_rows = 8192;
  if (begin == end) return;
  const std::int64_t maximum = std::clamp(max_rows, unit_, forward_rows) / unit_ * unit_;
  const std::int64_t chunks = (end - begin + maximum - 1) / maximum,
                     even = (end - begin + chunks - 1) / chunks;
  const std::int64_t whole = (even + unit_ - 1) / unit_ * unit_;
  for (; begin < end; begin += whole) {
    const std::int64_t count = std::min(whole, end - begin);
    visit(Chunk{begin, count, height_for(count)});
  }
}

template <class Logits, class Visit>
void LmHeadPass::for_each_kept_chunk(Logits* kept, std::int64_t kept_rows, std::int64_t max_rows,
                                     Visit visit) const {
  for_each_chunk(0, kept_rows, max_rows,
                 [&](const Chunk& chunk) { visit(chunk, kept + kept_logits(chunk.begin)); });
  for_each_chunk(kept_rows, rows(), max_rows,
                 [&](const Chunk& chunk) { visit(chunk, static_cast<Logits*>(nullptr)); });
}

template <class Visit>
void LmHeadPass::for_each_block(const Chunk& chunk, const VocabRange& columns, Visit visit) {
  const std::int64_t height = chunk.height, down = (chunk.rows + height - 1) / height;
  context_.parallel_for(
      down * lm_head_blocks(columns.count), chunk.rows * columns.count * factors_[0].width,
      [&](std::int64_t item, int worker) {
        const std::int64_t row = item % down * height,
                           column = columns.begin + item / down * lm_head_block;
        const Block block{row, std::min(height, chunk.rows - row), column,
                          std::min(lm_head_block, columns.begin + columns.count - column)};
        float* logits = context_.workspace.tiles(worker).need(height * (ld_ + lm_head_block));
        visit(block, Buffers{logits, logits + height * ld_, worker});
      });
}

}  // namespace troupe::engine::ops::cpu

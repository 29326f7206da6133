// LatentProjections: queries, keys and values of multi-head latent attention (DeepSeek-AI 2024,
// arXiv:2405.04434, section 2.1), as Attention reads them. Queries come from one normalized latent
// vector of a row, keys and values from another; some channels of a key are the same for all heads
// and are the only ones that rotate.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/nn/forward_context.h"
#include "engine/nn/linear.h"
#include "engine/nn/norm.h"
#include "engine/nn/plain_projections.h"

namespace troupe::engine::nn {

/// ColumnMap: columns of one matrix taken from another, in blocks of equal width.
class ColumnMap {
 public:
  ColumnMap() = default;
  /// from[i]: the block of the source that block i of the result is; -1: zeros. `source`: blocks of
  /// a row of the source; `width`: columns of a block.
  ColumnMap(std::vector<std::int32_t> from, std::int64_t source, std::int64_t width);

  /// x [T, source * width] -> [T, blocks * width].
  Tensor select(ops::Device& device, const Tensor& x) const;
  /// Gradient of select() where it takes no block twice: dy [T, blocks * width] -> [T, source *
  /// width], zeros in the blocks that it does not take.
  Tensor select_backward(ops::Device& device, const Tensor& dy) const;
  /// Adds the gradient of select() to dx, in the order of the blocks of dy.
  void add_backward(ops::Device& device, const Tensor& dy, Tensor& dx) const;

 private:
  ops::Indices rows_of(ops::Device& device, std::int64_t count,
                       const std::vector<std::int32_t>& blocks, std::int64_t source) const;

  std::vector<std::int32_t> from_, into_;  ///< into_[j]: the block of the result that takes j
  std::int64_t source_ = 0, width_ = 1;
};

/// Channels of a head. In the files a query is [plain, rotary], and so is a key, whose rotary
/// channels all heads share. In memory the pairs of a head of size K = plain + rotary are (i, i +
/// K/2), the rotated ones first.
struct LatentShape {
  int heads = 0;          ///< H of this rank
  int plain = 0;          ///< not rotated; even
  int rotary = 0;         ///< even
  int value = 0;          ///< V, of a value; at most K
  std::int64_t rank = 0;  ///< R, size of the latent vector of keys and values

  int head_size() const { return plain + rotary; }  ///< K
};

class LatentProjections {
 public:
  /// q_a [Q, D], q_norm [Q], q_b [H*K, Q]; kv_a [R + rotary, D], kv_norm [R], kv_b [H*(plain + V),
  /// R].
  struct Modules {
    Linear q_a, q_b, kv_a, kv_b;
    Norm q_norm, kv_norm;
  };
  LatentProjections(Modules modules, const LatentShape& shape);

  /// x [T, D] -> the operands, of as many key/value heads as query heads. Values have zeros in
  /// channels V .. K - 1 of each head.
  HeadTensors forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const;
  /// Gradients of the operands -> dx [T, D]. Adds into the gradients of the weights.
  Tensor backward(const HeadTensors& grads, const ForwardContext& pass, Saved& saved) const;
  /// out [T, H*K] of attention -> [T, H*V], its channels that are not padding.
  Tensor outputs(const ForwardContext& pass, const Tensor& out) const {
    return outputs_.select(pass.device, out);
  }
  Tensor outputs_backward(const ForwardContext& pass, const Tensor& dy) const {
    return outputs_.select_backward(pass.device, dy);
  }

 private:
  Modules modules_;
  ColumnMap queries_;          ///< from the outputs of q_b
  ColumnMap plain_, values_;   ///< of keys, and values: from the outputs of kv_b
  ColumnMap rotary_, latent_;  ///< of keys, and the vector itself: from the outputs of kv_a
  ColumnMap outputs_;          ///< from those of attention
};

}  // namespace troupe::engine::nn

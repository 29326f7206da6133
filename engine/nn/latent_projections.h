// LatentProjections: queries, keys and values of multi-head latent attention (DeepSeek-AI 2024,
// arXiv:2405.04434, section 2.1), as Attention reads them. Queries come from one normalized latent
// vector of a row, keys and values from another; some channels of a key are the same for all heads
// and are the only ones that rotate.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/nn/column_map.h"
#include "engine/nn/linear.h"
#include "engine/nn/norm.h"

namespace troupe::engine::nn {

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

/// The three operands of attention. Values have zeros in channels V .. K - 1 of each head.
struct HeadTensors {
  Tensor queries, keys, values;  ///< [T, H*K]
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

  std::int64_t width() const { return modules_.q_a.weight->value.shape()[1]; }  ///< D
  /// x [T, D] -> the operands, before the rotary embedding.
  HeadTensors forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const;
  /// Gradients of the operands -> dx [T, D], assigned. Adds into the gradients of the weights.
  void backward(const HeadTensors& grads, const ForwardContext& pass, Saved& saved,
                Tensor& dx) const;
  /// out [T, H*K] of attention -> [T, H*V], its channels that are not padding.
  Tensor without_padding(const ForwardContext& pass, const Tensor& out) const {
    return outputs_.select(pass.device, out);
  }
  Tensor without_padding_backward(const ForwardContext& pass, const Tensor& dy) const {
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

// ScoreHead: hidden states to a few numbers each: a critic's value, a reward, the classes of a
// process reward.
#pragma once

#include "engine/nn/parameters.h"

namespace troupe::engine::nn {

/// Replicated on every rank of a tensor-parallel group. The product is always in f32: its cost is
/// negligible.
struct ScoreHead {
  ops::Device* device = nullptr;
  Parameter* weight = nullptr;  ///< [C, D]
  Parameter* bias = nullptr;    ///< [C], or nullptr

  std::int64_t labels() const { return weight->value.shape()[0]; }
  /// hidden [M, D] -> scores [M, C].
  Tensor forward(const Tensor& hidden) const;
  /// dscores [M, C] -> dhidden [M, D]; adds into the gradients. `hidden`: the argument of forward.
  Tensor backward(const Tensor& hidden, const Tensor& dscores) const;
};

}  // namespace troupe::engine::nn

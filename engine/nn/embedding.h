// Embedding: tokens to the first hidden states: rows of a table, times a factor, with learned
// positions and a norm where the model has them.
#pragma once

#include <span>

#include "engine/collectives/tensor_group.h"
#include "engine/nn/norm.h"

namespace troupe::engine::nn {

struct Embedding {
  Parameter* table = nullptr;              ///< [V/tp, D] this rank's rows
  collectives::TensorGroup* tp = nullptr;  ///< the ranks that share the vocabulary
  float multiplier = 1;                    ///< applied to the rows of the table
  /// [P, D] added after the multiplier, whole on every rank, or nullptr. A position >= P is a Bug.
  Parameter* positions = nullptr;
  Norm norm = {};  ///< applied to the sum

  /// tokens [T], ids of the whole vocabulary -> [T, D].
  Tensor forward(std::span<const std::int32_t> tokens, const ForwardContext& pass,
                 Saved& saved) const;
  /// Adds into the gradients of parameters that are not frozen.
  void backward(std::span<const std::int32_t> tokens, const Tensor& dx, const ForwardContext& pass,
                Saved& saved) const;
};

}  // namespace troupe::engine::nn

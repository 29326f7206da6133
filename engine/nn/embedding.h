// Embedding: from tokens to the first hidden states: their rows of a table, times a factor, with
// learned positions and a norm where the model has them.
#pragma once

#include <span>

#include "engine/nn/norm.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

struct Embedding {
  Parameter* table = nullptr;            ///< [V/tp, D] this rank's rows
  parallel::Communicator* tp = nullptr;  ///< the ranks that share the vocabulary
  float multiplier = 1;                  ///< of the rows of the table
  Parameter* positions = nullptr;  ///< [P, D] added after the multiplier, whole on every rank; or
                                   ///< nullptr. P bounds positions: a Bug
  Norm norm = {};                  ///< of the sum

  /// tokens [T], ids of the whole vocabulary -> [T, D].
  Tensor forward(std::span<const std::int32_t> tokens, const Pass& pass, Saved& saved) const;
  /// Adds into the gradients of what is not frozen.
  void backward(std::span<const std::int32_t> tokens, const Tensor& dx, const Pass& pass,
                Saved& saved) const;
};

}  // namespace troupe::engine::nn

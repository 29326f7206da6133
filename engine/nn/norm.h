// Norm: RMSNorm (Zhang & Sennrich 2019, arXiv:1910.07467) or LayerNorm (Ba et al. 2016,
// arXiv:1607.06450), before or after a module.
#pragma once

#include "engine/nn/forward_context.h"
#include "engine/nn/parameters.h"
#include "engine/nn/saved.h"

namespace troupe::engine::nn {

struct Norm {
  enum class Kind { rms, layer };

  Parameter* gain = nullptr;  ///< [D], or nullptr: the identity
  float eps = 1e-6f;
  Kind kind = Kind::rms;
  Parameter* bias = nullptr;  ///< [D], LayerNorm only, or nullptr
  float offset = 0;           ///< added to the gain (1 in Gemma and in Nemotron's LayerNorm1p)
  /// RMSNorm only: the ranks that each have some columns of a row and of the gain
  /// (DividedNorm), or nullptr.
  collectives::TensorGroup* tp = nullptr;

  explicit operator bool() const { return gain != nullptr; }
  /// x [T, D] -> [T, D]. Saves x and one (RMSNorm) or two (LayerNorm) numbers per row.
  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const;
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const;

 private:
  Tensor scale(const ForwardContext& pass) const;
};

}  // namespace troupe::engine::nn

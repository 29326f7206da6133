// Norm: what stands before or after a module: RMSNorm (Zhang & Sennrich 2019, arXiv:1910.07467) or
// LayerNorm (Ba et al. 2016, arXiv:1607.06450).
#pragma once

#include "engine/nn/forward_context.h"
#include "engine/nn/parameters.h"
#include "engine/nn/saved.h"

namespace troupe::engine::nn {

struct Norm {
  enum class Kind { rms, layer };

  Parameter* gain =
      nullptr;  ///< [D], or nullptr: there is no norm here, and x goes through as it is
  float eps = 1e-6f;
  Kind kind = Kind::rms;
  Parameter* bias = nullptr;  ///< [D] of a LayerNorm, or nullptr
  float offset = 0;           ///< of an RMSNorm: added to the gain (Gemma's is 1)

  explicit operator bool() const { return gain != nullptr; }
  /// x [T, D] -> [T, D]. Leaves x and two or one numbers a row.
  Tensor forward(const Tensor& x, const Pass& pass, Saved& saved) const;
  Tensor backward(const Tensor& dy, const Pass& pass, Saved& saved) const;
};

}  // namespace troupe::engine::nn

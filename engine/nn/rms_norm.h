// RmsNorm (Zhang & Sennrich 2019, arXiv:1910.07467).
#pragma once

#include "engine/nn/parameters.h"
#include "engine/nn/pass.h"
#include "engine/nn/saved.h"

namespace troupe::engine::nn {

struct RmsNorm {
  Parameter* gain = nullptr;  ///< [D]
  float eps = 1e-6f;

  /// x [T, D] -> [T, D]. Leaves x and 1/rms.
  Tensor forward(const Tensor& x, const Pass& pass, Saved& saved) const;
  Tensor backward(const Tensor& dy, const Pass& pass, Saved& saved) const;
};

}  // namespace troupe::engine::nn

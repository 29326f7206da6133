// Mlp: the gated feed-forward block, down(silu(gate(x)) * up(x)) (Shazeer 2020, arXiv:2002.05202).
#pragma once

#include "engine/nn/linear.h"

namespace troupe::engine::nn {

struct Mlp {
  Linear gate, up, down;

  Tensor forward(const Tensor& x, const Pass& pass, Saved& saved) const;  ///< [T, D] -> [T, D]
  Tensor backward(const Tensor& dy, const Pass& pass, Saved& saved) const;
};

}  // namespace troupe::engine::nn

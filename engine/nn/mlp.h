// Mlp: the gated feed-forward block, down(silu(gate(x)) * up(x)) (Shazeer 2020, arXiv:2002.05202).
#pragma once

#include "engine/nn/linear.h"

namespace troupe::engine::nn {

struct Mlp {
  Linear gate, up, down;  ///< with down.tp, each rank has some of the inner columns

  Tensor forward(const Tensor& x, const Pass& pass, Saved& saved) const;  ///< [T, D] -> [T, D]
  Tensor backward(const Tensor& dy, const Pass& pass, Saved& saved) const;
};

}  // namespace troupe::engine::nn

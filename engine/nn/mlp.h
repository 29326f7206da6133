// Mlp: the feed-forward block, down(activation(gate(x)) * up(x)) (Shazeer 2020, arXiv:2002.05202),
// or plain down(activation(up(x))).
#pragma once

#include "engine/nn/linear.h"

namespace troupe::engine::nn {

struct Mlp {
  Linear gate, up, down;  ///< with down.tp, each rank has some of the inner columns; a gate without
                          ///< a weight: the plain form
  ops::Activation activation = ops::Activation::silu;

  Tensor forward(const Tensor& x, const Pass& pass, Saved& saved) const;  ///< [T, D] -> [T, D]
  Tensor backward(const Tensor& dy, const Pass& pass, Saved& saved) const;

 private:
  Tensor activated(const Tensor& g, const Tensor& u, const Pass& pass) const;
};

}  // namespace troupe::engine::nn

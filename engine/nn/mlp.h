// Mlp: the feed-forward block, down(activation(gate(x)) * up(x)) (Shazeer 2020, arXiv:2002.05202),
// or plain down(activation(up(x))).
#pragma once

#include "engine/nn/linear.h"

namespace troupe::engine::nn {

struct Mlp {
  /// Each rank has some of the inner columns (down.tp). A gate without a weight selects the plain
  /// form.
  Linear gate, up, down;
  ops::Activation activation = ops::Activation::silu;

  Tensor forward(const Tensor& x, const ForwardContext& pass,
                 Saved& saved) const;  ///< [T, D] -> [T, D]
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const;

 private:
  Tensor activated(const Tensor& g, const Tensor& u, const ForwardContext& pass) const;
};

}  // namespace troupe::engine::nn

// A Linear as a Module.
#pragma once

#include "engine/nn/linear.h"

namespace troupe::engine::nn {

struct LinearModule {
  Linear linear;
  Tensor forward(const Tensor& in, const ForwardContext& p, Saved& s) const {
    return linear.forward(in, p, s);
  }
  Tensor backward(const Tensor& dy, const ForwardContext& p, Saved& s) const {
    Tensor dx = p.device.empty({dy.shape()[0], linear.weight->value.shape()[1]});
    linear.backward(dy, p, s, dx, false);
    return dx;
  }
};

}  // namespace troupe::engine::nn

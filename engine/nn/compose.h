// Chain and Residual: modules made of modules. A block of a Llama is Chain<Residual<Chain<RmsNorm, Attention>>, Residual<Chain<RmsNorm,
// Mlp>>>.
#pragma once

#include <concepts>

#include "engine/nn/pass.h"
#include "engine/nn/saved.h"

namespace troupe::engine::nn {

/// forward pushes what its backward pops, in mirror order; backward adds into gradients and returns dx.
template <class M>
concept Module = requires(const M& m, const Tensor& x, const Pass& pass, Saved& saved) {
  { m.forward(x, pass, saved) } -> std::same_as<Tensor>;
  { m.backward(x, pass, saved) } -> std::same_as<Tensor>;
};

/// y = second(first(x))
template <Module First, Module Second>
struct Chain {
  First first;
  Second second;

  Tensor forward(const Tensor& x, const Pass& pass, Saved& saved) const {
    const Tensor middle = first.forward(x, pass, saved);
    return second.forward(middle, pass, saved);
  }
  Tensor backward(const Tensor& dy, const Pass& pass, Saved& saved) const {
    const Tensor dmiddle = second.backward(dy, pass, saved);
    return first.backward(dmiddle, pass, saved);
  }
};

/// y = x + inner(x)
template <Module M>
struct Residual {
  M inner;

  Tensor forward(const Tensor& x, const Pass& pass, Saved& saved) const {
    Tensor y = inner.forward(x, pass, saved);
    pass.device.add(x, y, y);
    return y;
  }
  Tensor backward(const Tensor& dy, const Pass& pass, Saved& saved) const {
    Tensor dx = inner.backward(dy, pass, saved);
    pass.device.add(dy, dx, dx);
    return dx;
  }
};

/// Keeps only the input and runs the forward pass again when backward comes: less memory, the same bits (Chen et al. 2016).
template <Module M>
struct Recompute {
  M inner;

  Tensor forward(const Tensor& x, const Pass& pass, Saved& saved) const {
    saved.push(x);
    Saved none = Saved::nothing();
    return inner.forward(x, pass, none);
  }
  Tensor backward(const Tensor& dy, const Pass& pass, Saved& saved) const {
    Saved again;
    inner.forward(saved.pop(), pass, again);
    return inner.backward(dy, pass, again);
  }
};

}  // namespace troupe::engine::nn

// Chain, Sum, Either, Residual and Normed: modules made of modules. A block of a Llama
// is Chain<Residual<Chain<Norm, Attention>>, Residual<Chain<Norm, Mlp>>>; one whose attention and
// MLP share a norm is Residual<Chain<Norm, Sum<Attention, Mlp>>>.
#pragma once

#include <concepts>
#include <variant>

#include "engine/nn/forward_context.h"
#include "engine/nn/hidden_dropout.h"
#include "engine/nn/norm.h"
#include "engine/nn/saved.h"
#include "engine/nn/sequence_parallel.h"

namespace troupe::engine::nn {

/// forward pushes what backward pops, in reverse order; backward adds into gradients and returns
/// dx.
template <class M>
concept Module = requires(const M& m, const Tensor& x, const ForwardContext& pass, Saved& saved) {
  { m.forward(x, pass, saved) } -> std::same_as<Tensor>;
  { m.backward(x, pass, saved) } -> std::same_as<Tensor>;
};

/// y = second(first(x))
template <Module First, Module Second>
struct Chain {
  First first;
  Second second;

  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
    const Tensor middle = first.forward(x, pass, saved);
    return second.forward(middle, pass, saved);
  }
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const {
    const Tensor dmiddle = second.backward(dy, pass, saved);
    return first.backward(dmiddle, pass, saved);
  }
};

/// y = left(x) + right(x), for modules that return new memory.
template <Module Left, Module Right>
struct Sum {
  Left left;
  Right right;

  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
    Tensor y = left.forward(x, pass, saved);
    pass.device.add(y, right.forward(x, pass, saved), y);
    return y;
  }
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const {
    Tensor dx = right.backward(dy, pass, saved);
    pass.device.add(left.backward(dy, pass, saved), dx, dx);
    return dx;
  }
};

/// One of several module types, chosen when the model is built: layers of a model may differ.
template <Module... M>
struct Either {
  std::variant<M...> module;

  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
    return std::visit([&](const auto& one) { return one.forward(x, pass, saved); }, module);
  }
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const {
    return std::visit([&](const auto& one) { return one.backward(dy, pass, saved); }, module);
  }
};

/// y = x + multiplier * dropout(inner(x)), for a module that returns new memory.
template <Module M>
struct Residual {
  M inner;
  float multiplier = 1;
  std::uint32_t stream = residual_stream(0, 0);  ///< of the dropout

  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
    Tensor y = inner.forward(x, pass, saved);
    if (drops_hidden(pass)) drop_hidden(pass, stream, y, y);
    if (multiplier != 1) pass.device.scale(y, multiplier);
    pass.device.add(x, y, y);
    return y;
  }
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const {
    Tensor above = dy;
    const bool drops = drops_hidden(pass);
    if (drops || multiplier != 1) above = pass.device.empty(dy.shape());
    if (drops)
      drop_hidden(pass, stream, dy, above);
    else if (multiplier != 1)
      pass.device.copy(dy, above);
    if (multiplier != 1) pass.device.scale(above, multiplier);
    Tensor dx = inner.backward(above, pass, saved);
    pass.device.add(dy, dx, dx);
    return dx;
  }
};

/// A module after a norm. With sequence parallelism the norm has own rows and the module gathers
/// them. With Recompute::norm the norm's output is recomputed in the backward
/// pass.
template <Module M>
struct Normed {
  Norm norm;
  M inner;

  bool recomputes(const ForwardContext& pass) const {
    return pass.recomputed.has(Recompute::norm) && norm;
  }
  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
    const std::size_t mark = saved.mark();
    const Tensor middle = gathered(norm.forward(x, pass, saved), pass);
    const Tensor y = inner.forward(middle, pass, saved);
    if (recomputes(pass)) {
      saved.forget(mark, middle);
      saved.push(x);  // shares memory with what the norm saved
    }
    return y;
  }
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const {
    if (recomputes(pass)) {
      const Tensor x = saved.pop();
      saved.restore([&] {
        Saved none = Saved::nothing();
        return gathered(norm.forward(x, pass, none), pass);
      });
    }
    const Tensor dmiddle = inner.backward(dy, pass, saved);
    return norm.backward(dmiddle, pass, saved);
  }

 private:
  static Tensor gathered(const Tensor& x, const ForwardContext& pass) {
    return gather_rows(pass, x, "the rows of a layer");
  }
};

}  // namespace troupe::engine::nn

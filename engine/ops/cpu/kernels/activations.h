// Activation functions, plain and gated.
#pragma once

#include <type_traits>

#include "engine/ops/cpu/kernels/kernels.h"
#include "engine/ops/cpu/simd/math.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu::kernels {

/// Logit of the tanh formula of GELU, x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)), and its
/// derivative. |x| is clamped to 16, where the sigmoid has saturated.
template <class V>
struct TanhGate {
  V logit, dlogit;
  [[gnu::always_inline]] explicit TanhGate(V x) {
    const V near = V::max(V::set(-16.0F), V::min(V::set(16.0F), x)),
            cubic = V::set(0.044715F) * near * near;
    const V rate = V::set(1.5957691216057308F);
    logit = rate * near * (V::set(1.0F) + cubic);
    dlogit = rate * (V::set(1.0F) + V::set(3.0F) * cubic);
  }
};

template <class V, Activation how>
[[gnu::always_inline]] inline V activated(V x) {
  const V one = V::set(1.0F);
  if constexpr (how == Activation::relu2) return V::max(V::zero(), x) * V::max(V::zero(), x);
  if constexpr (how == Activation::silu) return x / (one + exp(V::zero() - x));
  if constexpr (how == Activation::gelu_tanh)
    return x / (one + exp(V::zero() - TanhGate<V>(x).logit));
  if constexpr (how == Activation::gelu) return V::max(V::zero(), x) - abs(x) * Normal<V>(x).tail;
}

/// An activation and its derivative.
template <class V>
struct ValueAndDerivative {
  V value, derivative;
};

template <class V, Activation how>
[[gnu::always_inline]] inline ValueAndDerivative<V> with_derivative(V x) {
  const V one = V::set(1.0F);
  if constexpr (how == Activation::relu2) {
    const V positive = V::max(V::zero(), x);
    return {positive * positive, V::set(2.0F) * positive};
  } else if constexpr (how == Activation::gelu) {
    const Normal<V> normal(x);
    const V below = V::where_less(x, V::zero(), normal.tail, one - normal.tail);
    return {V::max(V::zero(), x) - abs(x) * normal.tail,
            below + x * (normal.bell * V::set(0.3989422804F))};
  } else if constexpr (how == Activation::gelu_tanh) {
    const TanhGate<V> gate(x);
    const V sigmoid = one / (one + exp(V::zero() - gate.logit));
    return {x * sigmoid, sigmoid * (one + x * (one - sigmoid) * gate.dlogit)};
  } else {
    const V sigmoid = one / (one + exp(V::zero() - x));
    return {x * sigmoid, sigmoid * (one + x * (one - sigmoid))};
  }
}

/// Calls visit with the activation as a constant.
template <class Visit>
[[gnu::always_inline]] inline void with_activation(Activation how, Visit visit) {
  switch (how) {
    case Activation::silu:
      return visit(std::integral_constant<Activation, Activation::silu>());
    case Activation::gelu:
      return visit(std::integral_constant<Activation, Activation::gelu>());
    case Activation::gelu_tanh:
      return visit(std::integral_constant<Activation, Activation::gelu_tanh>());
    case Activation::relu2:
      return visit(std::integral_constant<Activation, Activation::relu2>());
  }
}

template <class V>
void gated(Activation activation, const float* gate, const float* up, float* y, std::int64_t n) {
  with_activation(activation, [&](auto how) {
    for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
      (activated<V, decltype(how)::value>(V::load(gate + i, mask)) * V::load(up + i, mask))
          .store(y + i, mask);
    });
  });
}
template <class V, bool again>
void gated_backward_of(Activation activation, const float* gate, const float* up, const float* dy,
                       float* dgate, float* dup, float* y, std::int64_t n) {
  with_activation(activation, [&](auto how) {
    for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
      const V g = V::load(gate + i, mask), u = V::load(up + i, mask), above = V::load(dy + i, mask);
      const ValueAndDerivative<V> of = with_derivative<V, decltype(how)::value>(g);
      (above * u * of.derivative).store(dgate + i, mask);
      (above * of.value).store(dup + i, mask);
      if constexpr (again) (activated<V, decltype(how)::value>(g) * u).store(y + i, mask);
    });
  });
}
/// y may be nullptr.
template <class V>
void gated_backward(Activation activation, const float* gate, const float* up, const float* dy,
                    float* dgate, float* dup, float* y, std::int64_t n) {
  (y == nullptr ? gated_backward_of<V, false> : gated_backward_of<V, true>)(activation, gate, up,
                                                                            dy, dgate, dup, y, n);
}
template <class V>
void activate(Activation activation, const float* x, float* y, std::int64_t n) {
  with_activation(activation, [&](auto how) {
    for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
      activated<V, decltype(how)::value>(V::load(x + i, mask)).store(y + i, mask);
    });
  });
}
template <class V>
void activate_backward(Activation activation, const float* x, const float* dy, float* dx,
                       std::int64_t n) {
  with_activation(activation, [&](auto how) {
    for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
      (V::load(dy + i, mask) *
       with_derivative<V, decltype(how)::value>(V::load(x + i, mask)).derivative)
          .store(dx + i, mask);
    });
  });
}

}  // namespace troupe::engine::ops::cpu::kernels

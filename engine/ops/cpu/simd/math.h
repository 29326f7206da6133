// Elementary functions of sixteen lanes, and the loop over a row in vectors.
#pragma once

#include <cstdint>
#include "engine/ops/cpu/simd/vec.h"

namespace troupe::engine::ops::cpu::kernels {

/// e^x to about 1 ulp: x = n ln 2 + r, a polynomial of Cephes' expf for e^r (Moshier 1992), then
/// 2^n. NaN stays NaN.
template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  x = V::max(V::set(-104.0F), V::min(V::set(88.722F), x));
  const V magic = V::set(12582912.0F);  // 1.5 * 2^23: adding it rounds to a whole number
  const V n = V::fma(x, V::set(1.44269504088896341F), magic) - magic;
  V r = V::fma(n, V::set(-0.693359375F), x);
  r = V::fma(n, V::set(2.12194440e-4F), r);
  V p = V::set(1.9875691500e-4F);
  p = V::fma(p, r, V::set(1.3981999507e-3F));
  p = V::fma(p, r, V::set(8.3334519073e-3F));
  p = V::fma(p, r, V::set(4.1665795894e-2F));
  p = V::fma(p, r, V::set(1.6666665459e-1F));
  p = V::fma(p, r, V::set(5.0000001201e-1F));
  p = V::fma(p, r * r, r) + V::set(1.0F);
  return V::times_power(p, n);
}

/// Calls step(index, mask) for each vector of elements begin .. end - 1.
template <class V, class Step>
[[gnu::always_inline]] inline void for_each_vec(std::int64_t begin, std::int64_t end, Step step) {
  for (; begin + 16 <= end; begin += 16) step(begin, AllLanes{});
  if (begin < end) step(begin, V::first(end - begin));
}

template <class V>
[[gnu::always_inline]] inline V abs(V x) {
  return V::max(V::zero() - x, x);
}

/// tanh to about 2 ulp: an odd polynomial near 0 (a least-squares fit, 4e-9 relative), 1 - 2 /
/// (e^2x + 1) beyond. NaN stays NaN.
template <class V>
[[gnu::always_inline]] inline V tanh(V x) {
  const V one = V::set(1.0F), size = abs(x), square = x * x;
  V p = V::set(-5.7043511e-3F);
  p = V::fma(p, square, V::set(2.06385606e-2F));
  p = V::fma(p, square, V::set(-5.37395693e-2F));
  p = V::fma(p, square, V::set(1.333144069e-1F));
  p = V::fma(p, square, V::set(-3.33332819e-1F));
  const V near = V::fma(p * square, x, x);
  const V far = one - V::set(2.0F) / (exp(size + size) + one);
  return V::where_less(size, V::set(0.625F), near,
                       V::where_less(x, V::zero(), V::zero() - far, far));
}

/// Normal distribution: bell = exp(-x^2 / 2), and tail = the mass beyond |x| on one side, to about
/// 2 ulp where it is not tiny: bell times a polynomial in 1 / (1 + 0.35 |x|) (a least-squares fit
/// up to |x| = 14, 3e-8 relative; Abramowitz & Stegun 26.2.17 has the form).
template <class V>
struct Normal {
  V bell, tail;
  [[gnu::always_inline]] explicit Normal(V x) {
    bell = exp(V::set(-0.5F) * x * x);
    const V t = V::set(1.0F) / V::fma(V::set(0.35F), abs(x), V::set(1.0F));
    V p = V::set(-2.91440323e-2F);
    p = V::fma(p, t, V::set(1.439631197e-1F));
    p = V::fma(p, t, V::set(-2.556977722e-1F));
    p = V::fma(p, t, V::set(1.591566027e-1F));
    p = V::fma(p, t, V::set(-2.30985135e-2F));
    p = V::fma(p, t, V::set(1.055034888e-1F));
    p = V::fma(p, t, V::set(1.198339517e-1F));
    p = V::fma(p, t, V::set(1.398617272e-1F));
    p = V::fma(p, t, V::set(1.396214121e-1F));
    tail = bell * (p * t);
  }
};

}  // namespace troupe::engine::ops::cpu::kernels

// Everything that works along rows: exp, softmax sums, norms, rotations, gates, the optimizer's update.
// Sums run in sixteen lanes over blocks of 1024, each joined in a fixed order and added up as doubles.
#pragma once

#include "engine/ops/cpu/kernels.h"

namespace troupe::engine::ops::kernels {

inline constexpr std::int64_t sum_block = 1024;

/// e^x to about 1 ulp: x = n ln 2 + r, a polynomial of Cephes' expf for e^r (Moshier 1992), then 2^n. NaN stays NaN.
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

/// Calls step(index, mask) for each sixteen of n.
template <class V, class Step>
[[gnu::always_inline]] inline void for_lanes(std::int64_t begin, std::int64_t end, Step step) {
  for (std::int64_t i = begin; i < end; i += 16) step(i, V::first(end - i));
}

/// The sum of term(index, mask) over n elements; terms outside the mask must be 0.
template <class V, class Term>
[[gnu::always_inline]] inline double sum_of(std::int64_t n, Term term) {
  double total = 0;
  for (std::int64_t block = 0; block < n; block += sum_block) {
    V sum = V::zero();
    for_lanes<V>(block, n - block < sum_block ? n : block + sum_block, [&](std::int64_t i, auto mask) { sum = sum + term(i, mask); });
    float joined;
    V::template sums<1>(&sum, &joined);
    total += double{joined};
  }
  return total;
}

template <class V>
float largest_of(const float* x, std::int64_t n, float factor) {
  V best = V::set(x[0] * factor);
  const V first = best;
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) { best = V::max((V::load(x + i, mask) * V::set(factor)).where(mask, first), best); });
  return best.largest();
}

template <class V, bool store, bool weighted>
SoftmaxSums softmax(const float* x, float* to, std::int64_t n, float factor) {
  SoftmaxSums sums{largest_of<V>(x, n, factor), 0, 0};
  const V largest = V::set(sums.largest);
  for (std::int64_t block = 0; block < n; block += sum_block) {
    V sum[2] = {V::zero(), V::zero()};
    for_lanes<V>(block, n - block < sum_block ? n : block + sum_block, [&](std::int64_t i, auto mask) {
      const V z = V::load(x + i, mask) * V::set(factor) - largest;
      const V e = exp(z).where(mask, V::zero());
      if constexpr (store) e.store(to + i, mask);
      sum[0] = sum[0] + e;
      if constexpr (weighted) sum[1] = sum[1] + (e * z).where(mask, V::zero());
    });
    float joined[2];
    V::template sums<2>(sum, joined);
    sums.sum += double{joined[0]};
    sums.weighted += double{joined[1]};
  }
  return sums;
}

template <class V>
SoftmaxSums softmax_sums(const float* x, std::int64_t n, float factor, bool weighted) {
  return weighted ? softmax<V, false, true>(x, nullptr, n, factor) : softmax<V, false, false>(x, nullptr, n, factor);
}
template <class V>
SoftmaxSums softmax_in_place(float* x, std::int64_t n, float factor) {
  return softmax<V, true, false>(x, x, n, factor);
}

template <class V>
void attention_weights(float* scores, std::int64_t n, float scale, float lse) {
  for_lanes<V>(0, n,
               [&](std::int64_t i, auto mask) { exp(V::load(scores + i, mask) * V::set(scale) - V::set(lse)).store(scores + i, mask); });
}
template <class V>
void attention_dscores(const float* p, float* dp, std::int64_t n, float dot, float scale) {
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) {
    const V above = V::load(dp + i, mask) - V::set(dot);
    (V::load(p + i, mask) * above * V::set(scale)).store(dp + i, mask);
  });
}

/// logits become -inv_temperature * p * (dlogp + dentropy * (log p + entropy)); the caller adds the target's own term.
template <class V>
void head_dlogits(float* logits, std::int64_t n, const HeadRow& row) {
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) {
    const V log_p = V::load(logits + i, mask) * V::set(row.inv_temperature) - V::set(row.lse);
    const V above = V::set(row.dlogp) + V::set(row.dentropy) * (log_p + V::set(row.entropy));
    (V::set(-row.inv_temperature) * exp(log_p) * above).store(logits + i, mask);
  });
}

template <class V>
float dot(const float* a, const float* b, std::int64_t n) {
  return static_cast<float>(sum_of<V>(n, [&](std::int64_t i, auto mask) { return V::load(a + i, mask) * V::load(b + i, mask); }));
}
template <class V>
double mean_square(const float* x, std::int64_t n) {
  return sum_of<V>(n, [&](std::int64_t i, auto mask) { return V::load(x + i, mask) * V::load(x + i, mask); }) / static_cast<double>(n);
}

template <class V>
void rms_norm(const float* x, const float* gain, float inverse, float* y, std::int64_t n) {
  for_lanes<V>(0, n,
               [&](std::int64_t i, auto mask) { (V::load(x + i, mask) * V::set(inverse) * V::load(gain + i, mask)).store(y + i, mask); });
}
template <class V>
void rms_norm_dx(const float* x, const float* gain, float inverse, const float* dy, float* dx, std::int64_t n) {
  const double sum = sum_of<V>(n, [&](std::int64_t i, auto mask) {
    return V::load(dy + i, mask) * V::load(gain + i, mask) * (V::load(x + i, mask) * V::set(inverse));
  });
  const V mean = V::set(static_cast<float>(sum / static_cast<double>(n)));
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) {
    const V weighted = V::load(dy + i, mask) * V::load(gain + i, mask);
    ((weighted - V::load(x + i, mask) * V::set(inverse) * mean) * V::set(inverse)).store(dx + i, mask);
  });
}
template <class V>
void rms_norm_dgain(const float* x, const float* inverse, const float* dy, std::int64_t rows, std::int64_t width, float* dgain,
                    std::int64_t n) {
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) {
    V sum = V::load(dgain + i, mask);
    for (std::int64_t t = 0; t < rows; ++t) {
      const V normed = V::load(x + t * width + i, mask) * V::set(inverse[t]);
      sum = V::fma(V::load(dy + t * width + i, mask), normed, sum);
    }
    sum.store(dgain + i, mask);
  });
}
template <class V>
void column_sums(const float* x, std::int64_t rows, std::int64_t width, float* sums, std::int64_t n) {
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) {
    V sum = V::load(sums + i, mask);
    for (std::int64_t t = 0; t < rows; ++t) sum = sum + V::load(x + t * width + i, mask);
    sum.store(sums + i, mask);
  });
}

template <class V>
void rope(float* x, const float* cos, const float* sin, int heads, std::int64_t half, bool inverse) {
  const V sign = V::set(inverse ? -1.0F : 1.0F);
  for (int h = 0; h < heads; ++h, x += 2 * half) {
    for_lanes<V>(0, half, [&](std::int64_t i, auto mask) {
      const V c = V::load(cos + i, mask), s = V::load(sin + i, mask) * sign;
      const V low = V::load(x + i, mask), high = V::load(x + half + i, mask);
      (low * c - high * s).store(x + i, mask);
      (high * c + low * s).store(x + half + i, mask);
    });
  }
}

template <class V>
void swiglu(const float* gate, const float* up, float* y, std::int64_t n) {
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) {
    const V g = V::load(gate + i, mask);
    (g / (V::set(1.0F) + exp(V::zero() - g)) * V::load(up + i, mask)).store(y + i, mask);
  });
}
template <class V>
void swiglu_backward(const float* gate, const float* up, const float* dy, float* dgate, float* dup, std::int64_t n) {
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) {
    const V one = V::set(1.0F), g = V::load(gate + i, mask), above = V::load(dy + i, mask);
    const V sigmoid = one / (one + exp(V::zero() - g));
    const V slope = sigmoid * (one + g * (one - sigmoid));
    (above * V::load(up + i, mask) * slope).store(dgate + i, mask);
    (above * (g * sigmoid)).store(dup + i, mask);
  });
}

template <class V>
void add(const float* a, const float* b, float* sum, std::int64_t n) {
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) { (V::load(a + i, mask) + V::load(b + i, mask)).store(sum + i, mask); });
}
template <class V>
void scale(float* x, float factor, std::int64_t n) {
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) { (V::load(x + i, mask) * V::set(factor)).store(x + i, mask); });
}
template <class V>
void adamw(float* p, const float* g, float* m, float* v, const AdamWScalars& with, std::int64_t n) {
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) {
    const V grad = V::load(g + i, mask) * V::set(with.grad_scale);
    const V first = V::load(m + i, mask) + (grad - V::load(m + i, mask)) * V::set(with.one_minus_beta1);
    const V second = V::load(v + i, mask) * V::set(with.beta2) + grad * grad * V::set(with.one_minus_beta2);
    const V denominator = V::sqrt(second) / V::set(with.sqrt_correction2) + V::set(with.eps);
    first.store(m + i, mask);
    second.store(v + i, mask);
    (V::load(p + i, mask) * V::set(with.decay) - V::set(with.step_size) * (first / denominator)).store(p + i, mask);
  });
}

/// In f64: lane by lane, then the lanes in their order.
template <class V>
double sum_of_squares(const float* x, std::int64_t n) {
  typename V::Squares squares;
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) { squares.add(V::load(x + i, mask)); });
  double lanes[16], total = 0;
  squares.store(lanes);
  for (const double lane : lanes) total += lane;
  return total;
}
template <class V>
bool all_finite(const float* x, std::int64_t n) {
  V zeros = V::zero();  // infinity and NaN times 0 are NaN
  for_lanes<V>(0, n, [&](std::int64_t i, auto mask) { zeros = V::fma(V::load(x + i, mask), V::zero(), zeros); });
  float sum;
  V::template sums<1>(&zeros, &sum);
  return sum == 0;
}

}  // namespace troupe::engine::ops::kernels

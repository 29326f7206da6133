// Kernels along rows: softmax sums, attention weights, rotations, the optimizer's update. Sums use
// sixteen lanes over blocks of 1024. Each block is joined in a fixed order and added in f64.
#pragma once

#include "engine/ops/cpu/kernels/kernels.h"
#include "engine/ops/cpu/simd/math.h"

namespace troupe::engine::ops::cpu::kernels {

inline constexpr std::int64_t sum_block = 1024;

/// The sum of term(index, mask) over n elements; terms outside the mask must be 0.
template <class V, class Term>
[[gnu::always_inline]] inline double sum_of(std::int64_t n, Term term) {
  double total = 0;
  for (std::int64_t block = 0; block < n; block += sum_block) {
    V sum = V::zero();
    for_each_vec<V>(block, n - block < sum_block ? n : block + sum_block,
                    [&](std::int64_t i, auto mask) { sum = sum + term(i, mask); });
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
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    best = V::max((V::load(x + i, mask) * V::set(factor)).where(mask, first), best);
  });
  return best.largest();
}

template <class V, bool store, bool weighted>
SoftmaxSums softmax(const float* x, float* to, std::int64_t n, float factor) {
  SoftmaxSums sums{largest_of<V>(x, n, factor), 0, 0};
  const V largest = V::set(sums.largest);
  for (std::int64_t block = 0; block < n; block += sum_block) {
    V sum[2] = {V::zero(), V::zero()};
    for_each_vec<V>(block, n - block < sum_block ? n : block + sum_block,
                    [&](std::int64_t i, auto mask) {
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
  return weighted ? softmax<V, false, true>(x, nullptr, n, factor)
                  : softmax<V, false, false>(x, nullptr, n, factor);
}
template <class V>
SoftmaxSums softmax_in_place(float* x, std::int64_t n, float factor) {
  return softmax<V, true, false>(x, x, n, factor);
}

template <class V>
void attention_weights(float* scores, std::int64_t n, float scale, float lse) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    exp(V::load(scores + i, mask) * V::set(scale) - V::set(lse)).store(scores + i, mask);
  });
}
template <class V>
void attention_dscores(const float* p, float* dp, std::int64_t n, float dot, float scale) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    const V above = V::load(dp + i, mask) - V::set(dot);
    (V::load(p + i, mask) * above * V::set(scale)).store(dp + i, mask);
  });
}

/// x becomes cap * tanh(factor * x / cap).
template <class V>
void cap(float* x, std::int64_t n, float factor, float cap) {
  const V inner = V::set(factor / cap);
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    (V::set(cap) * tanh(V::load(x + i, mask) * inner)).store(x + i, mask);
  });
}
/// d becomes (d - dot) * (1 - (capped / cap)^2), where the second factor is the derivative of
/// cap().
template <class V>
void cap_backward(const float* capped, float* d, std::int64_t n, float cap, float dot) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    const V bent = V::load(capped + i, mask) * V::set(1 / cap);
    ((V::load(d + i, mask) - V::set(dot)) * (V::set(1.0F) - bent * bent)).store(d + i, mask);
  });
}
inline constexpr float lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/// scores[i] += slope * (first + i)
template <class V>
void add_alibi_bias(float* scores, std::int64_t n, float slope, std::int64_t first) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    // Integers below 2^24.
    const V distance = V::set(static_cast<float>(first + i)) + V::load(lane_numbers);
    (V::load(scores + i, mask) + V::set(slope) * distance).store(scores + i, mask);
  });
}

/// Prefetch distance of logits, which may have left the caches: one block, that is, the next row.
inline constexpr std::int64_t prefetch_logits = 896;

/// dlogits become -inv_temperature * p * (dlogp + dentropy * (log p + entropy)) * d logit / d
/// product. The caller adds the term of the target. dlogits may be logits. `row` is a copy, because
/// stores might alias the caller's.
template <class V, bool scaled, bool with_entropy>
void lm_head_dlogits_of(const float* logits, float* dlogits, std::int64_t n, const LmHeadRow row) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    __builtin_prefetch(logits + i + prefetch_logits);
    const V logit = V::load(logits + i, mask),
            log_p = logit * V::set(row.inv_temperature) - V::set(row.lse);
    V above = V::set(row.dlogp);
    if constexpr (with_entropy)
      above = above + V::set(row.dentropy) * (log_p + V::set(row.entropy));
    V dlogit = V::set(-row.inv_temperature) * exp(log_p) * above;
    if constexpr (scaled) {
      const V share = logit * V::set(row.inverse_cap);
      dlogit = dlogit * (V::set(row.logit_scale) * (V::set(1.0F) - share * share));
    }
    dlogit.store(dlogits + i, mask);
  });
}
template <class V>
void lm_head_dlogits(const float* logits, float* dlogits, std::int64_t n, const LmHeadRow& row) {
  const bool scaled = row.logit_scale != 1 || row.inverse_cap != 0;
  const bool with_entropy = row.dentropy != 0;
  const auto kernel =
      scaled
          ? (with_entropy ? lm_head_dlogits_of<V, true, true> : lm_head_dlogits_of<V, true, false>)
          : (with_entropy ? lm_head_dlogits_of<V, false, true>
                          : lm_head_dlogits_of<V, false, false>);
  kernel(logits, dlogits, n, row);
}

template <class V>
float dot(const float* a, const float* b, std::int64_t n) {
  return static_cast<float>(sum_of<V>(
      n, [&](std::int64_t i, auto mask) { return V::load(a + i, mask) * V::load(b + i, mask); }));
}
template <class V>
void column_sums(const float* x, std::int64_t rows, std::int64_t width, float* sums,
                 std::int64_t n) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    V sum = V::load(sums + i, mask);
    for (std::int64_t t = 0; t < rows; ++t) sum = sum + V::load(x + t * width + i, mask);
    sum.store(sums + i, mask);
  });
}

template <class V>
void rope(float* x, const float* cos, const float* sin, int heads, std::int64_t half,
          bool inverse) {
  const V sign = V::set(inverse ? -1.0F : 1.0F);
  for (int h = 0; h < heads; ++h, x += 2 * half) {
    for_each_vec<V>(0, half, [&](std::int64_t i, auto mask) {
      const V c = V::load(cos + i, mask), s = V::load(sin + i, mask) * sign;
      const V low = V::load(x + i, mask), high = V::load(x + half + i, mask);
      (low * c - high * s).store(x + i, mask);
      (high * c + low * s).store(x + half + i, mask);
    });
  }
}

template <class V>
void copy_lines(const float* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 16) V::load(from + i).stream(to + i);
  V::drain();
}
template <class V>
void add(const float* a, const float* b, float* sum, std::int64_t n) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    (V::load(a + i, mask) + V::load(b + i, mask)).store(sum + i, mask);
  });
}
template <class V>
void scale(float* x, float factor, std::int64_t n) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    (V::load(x + i, mask) * V::set(factor)).store(x + i, mask);
  });
}
template <class V, bool clear>
void adamw_of(float* p, float* g, float* m, float* v, const AdamWScalars& with, std::int64_t n) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    const V grad = V::load(g + i, mask) * V::set(with.grad_scale);
    const V first =
        V::load(m + i, mask) + (grad - V::load(m + i, mask)) * V::set(with.one_minus_beta1);
    const V second =
        V::load(v + i, mask) * V::set(with.beta2) + grad * grad * V::set(with.one_minus_beta2);
    const V denominator = V::sqrt(second) / V::set(with.sqrt_correction2) + V::set(with.eps);
    if constexpr (clear) V::zero().store(g + i, mask);
    first.store(m + i, mask);
    second.store(v + i, mask);
    (V::load(p + i, mask) * V::set(with.decay) - V::set(with.step_size) * (first / denominator))
        .store(p + i, mask);
  });
}
template <class V>
void adamw(float* p, float* g, float* m, float* v, const AdamWScalars& with, std::int64_t n) {
  with.clear_gradients ? adamw_of<V, true>(p, g, m, v, with, n)
                       : adamw_of<V, false>(p, g, m, v, with, n);
}

/// Sums in f64: lane by lane, then over the lanes in order.
template <class V>
double sum_of_squares(const float* x, std::int64_t n) {
  typename V::Squares squares;
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) { squares.add(V::load(x + i, mask)); });
  double lanes[16], total = 0;
  squares.store(lanes);
  for (const double lane : lanes) total += lane;
  return total;
}
template <class V>
bool all_finite(const float* x, std::int64_t n) {
  V zeros = V::zero();  // infinity and NaN times 0 are NaN
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    zeros = V::fma(V::load(x + i, mask), V::zero(), zeros);
  });
  float sum;
  V::template sums<1>(&zeros, &sum);
  return sum == 0;
}

}  // namespace troupe::engine::ops::cpu::kernels

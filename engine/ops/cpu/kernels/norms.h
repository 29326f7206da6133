// RMSNorm and LayerNorm, and their gradients.
#pragma once

#include "engine/ops/cpu/kernels/rows.h"

namespace troupe::engine::ops::cpu::kernels {

template <class V>
double mean_square(const float* x, std::int64_t n) {
  return sum_of<V>(n, [&](std::int64_t i,
                          auto mask) { return V::load(x + i, mask) * V::load(x + i, mask); }) /
         static_cast<double>(n);
}

template <class V>
void rms_norm(const float* x, const float* gain, float inverse, float* y, std::int64_t n) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    (V::load(x + i, mask) * V::set(inverse) * V::load(gain + i, mask)).store(y + i, mask);
  });
}
template <class V>
void rms_norm_dx(const float* x, const float* gain, float inverse, const float* dy, float* dx,
                 std::int64_t n) {
  const double sum = sum_of<V>(n, [&](std::int64_t i, auto mask) {
    return V::load(dy + i, mask) * V::load(gain + i, mask) *
           (V::load(x + i, mask) * V::set(inverse));
  });
  const V mean = V::set(static_cast<float>(sum / static_cast<double>(n)));
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    const V weighted = V::load(dy + i, mask) * V::load(gain + i, mask);
    ((weighted - V::load(x + i, mask) * V::set(inverse) * mean) * V::set(inverse))
        .store(dx + i, mask);
  });
}
/// dgain of either norm, for n columns of rows with stride `width`, added in the order of the rows.
template <class V, bool centred>
void norm_dgain(const float* x, const float* mean, const float* inverse, const float* dy,
                std::int64_t rows, std::int64_t width, float* dgain, std::int64_t n) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    V sum = V::load(dgain + i, mask);
    for (std::int64_t t = 0; t < rows; ++t) {
      V value = V::load(x + t * width + i, mask);
      if constexpr (centred) value = value - V::set(mean[t]);
      sum = V::fma(V::load(dy + t * width + i, mask), value * V::set(inverse[t]), sum);
    }
    sum.store(dgain + i, mask);
  });
}
template <class V>
void rms_norm_dgain(const float* x, const float* inverse, const float* dy, std::int64_t rows,
                    std::int64_t width, float* dgain, std::int64_t n) {
  norm_dgain<V, false>(x, nullptr, inverse, dy, rows, width, dgain, n);
}

template <class V>
double mean(const float* x, std::int64_t n) {
  return sum_of<V>(n, [&](std::int64_t i, auto mask) { return V::load(x + i, mask); }) /
         static_cast<double>(n);
}
/// Returns the mean of (x - mean)^2.
template <class V>
double variance(const float* x, float mean, std::int64_t n) {
  const double sum = sum_of<V>(n, [&](std::int64_t i, auto mask) {
    const V off = (V::load(x + i, mask) - V::set(mean)).where(mask, V::zero());
    return off * off;
  });
  return sum / static_cast<double>(n);
}
template <class V>
void layer_norm(const float* x, const float* gain, const float* bias, float mean, float inverse,
                float* y, std::int64_t n) {
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    const V weighted =
        (V::load(x + i, mask) - V::set(mean)) * V::set(inverse) * V::load(gain + i, mask);
    (bias == nullptr ? weighted : weighted + V::load(bias + i, mask)).store(y + i, mask);
  });
}
template <class V>
void layer_norm_dx(const float* x, const float* gain, float mean, float inverse, const float* dy,
                   float* dx, std::int64_t n) {
  const auto weighted = [&](std::int64_t i, auto mask) {
    return V::load(dy + i, mask) * V::load(gain + i, mask);
  };
  const auto normed = [&](std::int64_t i, auto mask) {
    return (V::load(x + i, mask) - V::set(mean)) * V::set(inverse);
  };
  const double sum = sum_of<V>(n, weighted);
  const double weighted_dot =
      sum_of<V>(n, [&](std::int64_t i, auto mask) { return weighted(i, mask) * normed(i, mask); });
  const V shift = V::set(static_cast<float>(sum / static_cast<double>(n))),
          share = V::set(static_cast<float>(weighted_dot / static_cast<double>(n)));
  for_each_vec<V>(0, n, [&](std::int64_t i, auto mask) {
    ((weighted(i, mask) - shift - normed(i, mask) * share) * V::set(inverse)).store(dx + i, mask);
  });
}
template <class V>
void layer_norm_dgain(const float* x, const float* mean, const float* inverse, const float* dy,
                      std::int64_t rows, std::int64_t width, float* dgain, std::int64_t n) {
  norm_dgain<V, true>(x, mean, inverse, dy, rows, width, dgain, n);
}

}  // namespace troupe::engine::ops::cpu::kernels

// Sixteen f32 lanes in portable C++ (GCC and clang vectors of four), for any processor. Products
// are rounded before they are added, so results differ in the last bits from those of processors
// with FMA.
#pragma once

#include <cstdint>

#include "engine/ops/cpu/simd/vec.h"

namespace troupe::engine::ops::cpu::baseline {

using Four = float __attribute__((vector_size(16)));
using FourInts = std::int32_t __attribute__((vector_size(16)));
using FourWords = std::uint32_t __attribute__((vector_size(16)));

struct Vec {
  static constexpr int tile_rows = 2, nn_vectors = 1, f32_mr = 1, bf16_mr = 1, dot_mr = 1;
  static constexpr int few_rows_columns(int) { return 1; }

  Four q[4];

  using Mask = int;
  [[gnu::always_inline]] static Mask first(std::int64_t n) {
    return n > 16 ? 16 : n < 0 ? 0 : static_cast<int>(n);
  }
  [[gnu::always_inline]] static Vec zero() { return set(0); }
  [[gnu::always_inline]] static Vec set(float x) {
    const Four four{x, x, x, x};
    return {{four, four, four, four}};
  }
  [[gnu::always_inline]] static Vec load(const float* p) {
    Vec x;
    __builtin_memcpy(&x, p, sizeof(x));
    return x;
  }
  [[gnu::always_inline]] static Vec load(const float* p, Mask m) {
    float values[16] = {};
    for (int i = 0; i < m; ++i) values[i] = p[i];
    return load(values);
  }
  [[gnu::always_inline]] void store(float* p) const { __builtin_memcpy(p, this, sizeof(*this)); }
  [[gnu::always_inline]] void store(float* p, Mask m) const {
    float values[16];
    store(values);
    for (int i = 0; i < m; ++i) p[i] = values[i];
  }
  [[gnu::always_inline]] void stream(float* p) const { store(p); }
  [[gnu::always_inline]] static void drain() {}
  /// Loads sixteen int8 values; store_bytes() stores the lowest bytes of the lanes.
  [[gnu::always_inline]] static Vec of_bytes(const std::int8_t* p) {
    float values[16];
    for (int i = 0; i < 16; ++i) values[i] = p[i];
    return load(values);
  }
  [[gnu::always_inline]] void store_bytes(std::int8_t* p) const {
    for (int i = 0; i < 16; ++i)
      p[i] = static_cast<std::int8_t>(__builtin_bit_cast(FourWords, q[i / 4])[i % 4]);
  }
  [[gnu::always_inline]] static Vec load(const float* p, AllLanes) { return load(p); }
  [[gnu::always_inline]] void store(float* p, AllLanes) const { store(p); }
  [[gnu::always_inline]] Vec where(AllLanes, Vec) const { return *this; }
  /// Vec outside the mask become `other`.
  [[gnu::always_inline]] Vec where(Mask m, Vec other) const {
    float values[16];
    other.store(values);
    store(values, m);
    return load(values);
  }

  [[gnu::always_inline]] static Vec fma(Vec a, Vec b, Vec c) {
    for (int i = 0; i < 4; ++i) c.q[i] = a.q[i] * b.q[i] + c.q[i];
    return c;
  }
  [[gnu::always_inline]] static Vec sqrt(Vec a) {
    for (Four& four : a.q) {
      for (int i = 0; i < 4; ++i) four[i] = __builtin_sqrtf(four[i]);
    }
    return a;
  }
  /// Returns the second operand where either is NaN.
  [[gnu::always_inline]] static Vec max(Vec a, Vec b) {
    for (int i = 0; i < 4; ++i) b.q[i] = a.q[i] > b.q[i] ? a.q[i] : b.q[i];
    return b;
  }
  [[gnu::always_inline]] static Vec min(Vec a, Vec b) {
    for (int i = 0; i < 4; ++i) b.q[i] = a.q[i] < b.q[i] ? a.q[i] : b.q[i];
    return b;
  }

  /// Returns `yes` in lanes where a < b, and `no` elsewhere and where either is NaN.
  [[gnu::always_inline]] static Vec where_less(Vec a, Vec b, Vec yes, Vec no) {
    for (int i = 0; i < 4; ++i) no.q[i] = a.q[i] < b.q[i] ? yes.q[i] : no.q[i];
    return no;
  }

  /// Returns x * 2^n for integral n in [-252, 254], including subnormal results.
  [[gnu::always_inline]] static Vec times_power(Vec x, Vec n) {
    for (int i = 0; i < 4; ++i) {
      const Four defined =
          n.q[i] == n.q[i] ? n.q[i] : Four{};  // NaN has no integer value; x propagates it
      const FourInts whole = __builtin_convertvector(defined, FourInts), half = whole >> 1,
                     rest = whole - half;
      x.q[i] = x.q[i] * __builtin_bit_cast(Four, (half + 127) << 23) *
               __builtin_bit_cast(Four, (rest + 127) << 23);
    }
    return x;
  }
  [[gnu::always_inline]] static Vec round_bf16(Vec x) {
    for (Four& four : x.q) {
      const FourWords bits = __builtin_bit_cast(FourWords, four);
      const FourWords rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
      four = four == four ? __builtin_bit_cast(Four, rounded) : four;
    }
    return x;
  }

  /// Packs two bf16 per lane, from lanes that are rounded already: `first` in the upper half.
  [[gnu::always_inline]] static Vec pair(Vec first, Vec second) {
    for (int i = 0; i < 4; ++i) {
      const FourWords upper = __builtin_bit_cast(FourWords, first.q[i]),
                      lower = __builtin_bit_cast(FourWords, second.q[i]);
      first.q[i] = __builtin_bit_cast(Four, (upper & 0xffff0000U) | (lower >> 16));
    }
    return first;
  }
  [[gnu::always_inline]] static Vec first_of(Vec words) {
    for (Four& four : words.q)
      four = __builtin_bit_cast(Four, __builtin_bit_cast(FourWords, four) & 0xffff0000U);
    return words;
  }
  [[gnu::always_inline]] static Vec second_of(Vec words) {
    for (Four& four : words.q)
      four = __builtin_bit_cast(Four, __builtin_bit_cast(FourWords, four) << 16);
    return words;
  }
  /// Moves the values of x and y at even positions to x, and those at odd positions to y.
  [[gnu::always_inline]] static void part_even_odd(Vec& x, Vec& y) {
    float values[32];
    x.store(values);
    y.store(values + 16);
    for (int i = 0; i < 16; ++i) {
      x.q[i / 4][i % 4] = values[2 * i];
      y.q[i / 4][i % 4] = values[2 * i + 1];
    }
  }
  [[gnu::always_inline]] static void transpose(Vec (&rows)[16]) {
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < i; ++j) {
        const float kept = rows[i].q[j / 4][j % 4];
        rows[i].q[j / 4][j % 4] = rows[j].q[i / 4][i % 4];
        rows[j].q[i / 4][i % 4] = kept;
      }
    }
  }

  /// out[0..N) = or += the sums over the lanes of N vectors.
  template <int N>
  [[gnu::always_inline]] static void sums(const Vec* x, float* out, bool add = false) {
    for (int i = 0; i < N; ++i) {
      const Four low = x[i].q[0] + x[i].q[2], high = x[i].q[1] + x[i].q[3];
      const float sum =
          ((low[0] + low[1]) + (low[2] + low[3])) + ((high[0] + high[1]) + (high[2] + high[3]));
      out[i] = add ? out[i] + sum : sum;
    }
  }

  /// Accumulates sixteen sums of squares in f64.
  struct Squares {
    double sums[16] = {};
    [[gnu::always_inline]] void add(Vec x) {
      for (int i = 0; i < 16; ++i) sums[i] += double{x.q[i / 4][i % 4]} * double{x.q[i / 4][i % 4]};
    }
    [[gnu::always_inline]] void store(double* to) const {
      __builtin_memcpy(to, sums, sizeof(sums));
    }
  };
  [[gnu::always_inline]] float largest() const {
    const Vec& x = *this;
    float best = x.q[0][0];
    for (const Four& four : x.q) {
      for (int i = 0; i < 4; ++i) best = four[i] > best ? four[i] : best;
    }
    return best;
  }
};

[[gnu::always_inline]] inline Vec operator+(Vec a, Vec b) {
  return {{a.q[0] + b.q[0], a.q[1] + b.q[1], a.q[2] + b.q[2], a.q[3] + b.q[3]}};
}
[[gnu::always_inline]] inline Vec operator-(Vec a, Vec b) {
  return {{a.q[0] - b.q[0], a.q[1] - b.q[1], a.q[2] - b.q[2], a.q[3] - b.q[3]}};
}
[[gnu::always_inline]] inline Vec operator*(Vec a, Vec b) {
  return {{a.q[0] * b.q[0], a.q[1] * b.q[1], a.q[2] * b.q[2], a.q[3] * b.q[3]}};
}
[[gnu::always_inline]] inline Vec operator/(Vec a, Vec b) {
  return {{a.q[0] / b.q[0], a.q[1] / b.q[1], a.q[2] / b.q[2], a.q[3] / b.q[3]}};
}

}  // namespace troupe::engine::ops::cpu::baseline

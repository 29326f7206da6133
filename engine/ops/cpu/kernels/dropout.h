// Dropout of a row, with the random numbers of philox() (engine/base/random/random.h), many at a
// time.
#pragma once

#include "engine/ops/cpu/kernels/kernels.h"

namespace troupe::engine::ops::cpu::kernels {

/// Random numbers of `blocks` consecutive counters: words[4 * i + w] is word w of block i.
template <class V, int blocks>
[[gnu::always_inline]] inline void random_words(const DropoutRow& row, std::uint32_t first,
                                                std::uint32_t* words) {
  constexpr std::uint64_t multiply0 = 0xD2511F53, multiply1 = 0xCD9E8D57;
  constexpr std::uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;
  std::uint32_t c0[blocks], c1[blocks], c2[blocks], c3[blocks];
  for (int i = 0; i < blocks; ++i) {
    c0[i] = first + static_cast<std::uint32_t>(i);
    c1[i] = row.counter[0];
    c2[i] = row.counter[1];
    c3[i] = row.counter[2];
  }
  std::uint32_t key0 = row.key[0], key1 = row.key[1];
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < blocks; ++i) {
      const std::uint64_t p0 = multiply0 * c0[i], p1 = multiply1 * c2[i];
      c0[i] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[i] ^ key0;
      c1[i] = static_cast<std::uint32_t>(p1);
      c2[i] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[i] ^ key1;
      c3[i] = static_cast<std::uint32_t>(p0);
    }
    key0 += weyl0;
    key1 += weyl1;
  }
  for (int i = 0; i < blocks; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

/// Instantiated for each instruction set; the loops are vectorized by the compiler.
template <class V>
void dropout(const DropoutRow& row, std::uint64_t first, const float* x, float* y, std::int64_t n) {
  constexpr int blocks = 16;
  std::uint32_t words[4 * blocks];
  for (std::int64_t i = 0; i < n;) {
    const std::uint64_t column = first + static_cast<std::uint64_t>(i);
    random_words<V, blocks>(row, static_cast<std::uint32_t>(column / 4), words);
    const auto skipped = static_cast<std::int64_t>(column % 4);
    const std::int64_t count = n - i < 4 * blocks - skipped ? n - i : 4 * blocks - skipped;
    for (std::int64_t j = 0; j < count; ++j)
      y[i + j] = words[skipped + j] < row.bound ? 0.0F : x[i + j] * row.factor;
    i += count;
  }
}

}  // namespace troupe::engine::ops::cpu::kernels

// GEMM from packed operands: A in tiles of MR rows, [k group][row], B in panels of 32 columns,
// [k group][column]. Rows of the tile are broadcast against the two vectors of the panel, so each
// element of C is one chain of FMAs in the order of k, which continues from C when accumulating,
// whatever the tile, the panel and the blocking of k. So a gradient summed over two micro-batches
// has the bits of one summed over both at once. A packed element is one float, or two bf16 values
// of consecutive k (F32Panel and Bf16Panel below). Nothing here depends on the number of rows.
#pragma once

#include <bit>
#include <utility>

#include "engine/ops/cpu/kernels/kernels.h"

namespace troupe::engine::ops::cpu::kernels {

/// f32: a k group is one k.
template <class V>
struct F32Panel {
  static constexpr int mr = V::f32_mr, k_pack = 1;
  using Right = V;
  [[gnu::always_inline]] static Right right(const float* words) { return V::load(words); }
  [[gnu::always_inline]] static V add(float left, Right right, V sum) {
    return V::fma(V::set(left), right, sum);
  }
  /// Packs sixteen elements from 16 * k_pack contiguous values, of which `count` exist.
  [[gnu::always_inline]] static V along(const float* from, std::int64_t count) {
    return V::load(from, V::first(count));
  }
  /// Packs one element of each of sixteen neighbouring items, from rows of k with leading dimension
  /// `ld`, of which `depth` exist.
  [[gnu::always_inline]] static V across(const float* from, std::int64_t, std::int64_t,
                                         decltype(V::first(0)) mask) {
    return V::load(from, mask);
  }
};

/// bf16: a k group is two k. The first one is in the upper half of the element and is added first.
/// Products of two bf16 values are exact in f32, so this is the arithmetic of AVX-512-BF16's
/// vdpbf16ps (Intel SDM vol. 2, VDPBF16PS), except that vdpbf16ps flushes subnormal sums to zero.
template <class V>
struct Bf16Panel {
  static constexpr int mr = V::bf16_mr, k_pack = 2;
  struct Right {
    V first, second;
  };
  [[gnu::always_inline]] static Right right(const float* words) {
    const V both = V::load(words);
    return {V::first_of(both), V::second_of(both)};
  }
  /// The operand of two vectors whose values are bf16 already.
  [[gnu::always_inline]] static Right whole(V first, V second) { return {first, second}; }
  [[gnu::always_inline]] static V add(float left, Right right, V sum) {
    const auto word = std::bit_cast<std::uint32_t>(left);
    const V first = V::set(std::bit_cast<float>(word & 0xffff0000U)),
            second = V::set(std::bit_cast<float>(word << 16));
    return V::fma(second, right.second, V::fma(first, right.first, sum));
  }
  [[gnu::always_inline]] static V along(const float* from, std::int64_t count) {
    V x = V::load(from, V::first(count)),
      y = count > 16 ? V::load(from + 16, V::first(count - 16)) : V::zero();
    V::part_even_odd(x, y);
    return V::pair(V::round_bf16(x), V::round_bf16(y));
  }
  [[gnu::always_inline]] static V across(const float* from, std::int64_t ld, std::int64_t depth,
                                         decltype(V::first(0)) mask) {
    const V second = depth > 1 ? V::load(from + ld, mask) : V::zero();
    return V::pair(V::round_bf16(V::load(from, mask)), V::round_bf16(second));
  }
};

template <class V, class E>
void pack_elements(const PackArgs& p, float* to) {
  const std::int64_t steps = (p.k + E::k_pack - 1) / E::k_pack;
  if (p.width == 1 && !p.items_contiguous) {  // one item: its values are in order already
    for (std::int64_t s = 0; s < steps; s += 16)
      E::along(p.from + s * E::k_pack, p.k - s * E::k_pack).store(to + s, V::first(steps - s));
    return;
  }
  const std::int64_t next = p.width < 16 ? p.width : 16;
  for (std::int64_t item = 0; item < p.width; item += 16) {
    const auto room = V::first(p.width - item), there = V::first(p.count - item);
    float* target = to + item;
    if (p.items_contiguous) {
      for (std::int64_t s = 0; s < steps; ++s, target += p.width) {
        for (std::int64_t row = 0; row < E::k_pack; ++row)
          __builtin_prefetch(p.from + (s * E::k_pack + row + prefetch_rows) * p.ld + item, 0, 2);
        E::across(p.from + s * E::k_pack * p.ld + item, p.ld, p.k - s * E::k_pack, there)
            .store(target, room);
      }
      continue;
    }
    for (std::int64_t s = 0; s < steps; s += 16) {
      V vectors[16];
      // Values of the same rows, or of the next ones.
      const std::int64_t ahead = s * E::k_pack + prefetch_values < p.k
                                     ? prefetch_values
                                     : prefetch_values - p.k + next * p.ld;
      for (std::int64_t i = 0; i < 16; ++i) {
        const float* from = p.from + (item + i) * p.ld + s * E::k_pack;
        for (std::int64_t line = 0; line < E::k_pack; ++line)
          __builtin_prefetch(from + ahead + 16 * line);
        vectors[i] = item + i < p.count ? E::along(from, p.k - s * E::k_pack) : V::zero();
      }
      V::transpose(vectors);
      for (std::int64_t i = 0; i < 16 && s + i < steps; ++i, target += p.width)
        vectors[i].store(target, room);
    }
  }
}

/// Prefetches of a tile: `lines` cache lines of `elements` per k group, and C of the next tile
/// (nullptr: nothing).
struct Prefetch {
  const float* elements;
  int lines;
  const float* c;
};

/// `width`: vectors of the panel that are used, 1 or 2. Prefetches go to the L1 cache if the tile
/// leaves room there, otherwise to L2.
template <class V, class E, int M, int width, int lines>
[[gnu::always_inline]] inline void panel_steps(const float* a, const float* b, std::int64_t steps,
                                               const float* ahead, V (&sums)[M][width]) {
  constexpr int level = lines > 1 && M < 10 ? 3 : 2;
  for (std::int64_t s = 0; s < steps; ++s, a += M, b += panel_nr) {
    if constexpr (lines > 0) __builtin_prefetch(ahead + 16 * lines * s, 0, level);
    if constexpr (lines > 1) __builtin_prefetch(ahead + 16 * lines * s + 16, 0, level);
    const auto left = E::right(b), right = E::right(b + 16 * (width - 1));
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      sums[i][0] = E::add(a[i], left, sums[i][0]);
      if constexpr (width > 1) sums[i][1] = E::add(a[i], right, sums[i][1]);
    }
  }
}

/// C [M, n <= 16 width] = or += over `steps` k groups, from a tile [steps][M] and a panel
/// [steps][32].
template <class V, class E, int M, int width>
[[gnu::noinline]] void panel_tile(const float* a, const float* b, std::int64_t steps,
                                  Prefetch ahead, float* c, std::int64_t ldc, std::int64_t n,
                                  bool add) {
  // Masked in both cases: without the mask the baseline keeps the sums in memory, not in registers.
  const auto all = V::first(16), last = V::first(n - 16 * (width - 1));
  V sums[M][width];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    if constexpr (width > 1) sums[i][0] = add ? V::load(c + i * ldc, all) : V::zero();
    sums[i][width - 1] = add ? V::load(c + i * ldc + 16 * (width - 1), last) : V::zero();
  }
  if (ahead.c != nullptr) {
    for (int i = 0; i < M; ++i) {
      __builtin_prefetch(ahead.c + i * ldc, 1);
      __builtin_prefetch(ahead.c + i * ldc + 16, 1);
    }
  }
  switch (ahead.lines) {
    case 0:
      panel_steps<V, E, M, width, 0>(a, b, steps, nullptr, sums);
      break;
    case 1:
      panel_steps<V, E, M, width, 1>(a, b, steps, ahead.elements, sums);
      break;
    default:
      panel_steps<V, E, M, width, 2>(a, b, steps, ahead.elements, sums);
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    if constexpr (width > 1) sums[i][0].store(c + i * ldc, all);
    sums[i][width - 1].store(c + i * ldc + 16 * (width - 1), last);
  }
}

/// Operands of panel_tile().
struct PanelTile {
  const float *a, *b;
  std::int64_t steps;
  Prefetch ahead;
  float* c;
  std::int64_t ldc, n;
  bool add;
};

/// Calls panel_tile() with the compile-time number of rows.
template <class V, class E, int M = E::mr>
[[gnu::always_inline]] inline void panel_tile_of(std::int64_t rows, const PanelTile& t) {
  if constexpr (M > 0) {
    if (rows == M && t.n > 16)
      return panel_tile<V, E, M, 2>(t.a, t.b, t.steps, t.ahead, t.c, t.ldc, t.n, t.add);
    if (rows == M)
      return panel_tile<V, E, M, 1>(t.a, t.b, t.steps, t.ahead, t.c, t.ldc, t.n, t.add);
    panel_tile_of<V, E, M - 1>(rows, t);
  }
}

/// Chooses what the tiles of a block prefetch. With few tiles a panel comes from memory, and the
/// hardware prefetcher does not look far enough ahead. A single tile prefetches what it reads
/// itself soon. With a few tiles, the first two prefetch half of the next panel each; the first
/// tile of the first panel behaves like a single tile. The other tiles prefetch what is read after
/// the product, one line per k group.
class Prefetcher {
 public:
  explicit Prefetcher(const PackedGemm& p)
      : whole_(p.k_groups * panel_nr),
        last_(p.n - panel_nr),
        alone_(p.m <= p.mr),
        few_(!alone_ && p.m <= 4 * p.mr),
        next_(p.next),
        next_lines_(p.next_lines) {}
  /// `b`: the panel of column n, of `steps` k groups.
  Prefetch next(const float* b, std::int64_t n, std::int64_t steps, std::int64_t tile) {
    constexpr std::int64_t words_ahead = 4096;
    if (tile == 0 && (alone_ || (few_ && n == 0))) return {b + words_ahead, 2, nullptr};
    if (few_ && tile < 2 && n < last_)
      return {b + whole_ + tile * steps * (panel_nr / 2), 1, nullptr};
    if (next_lines_ <= 0) return {nullptr, 0, nullptr};
    next_lines_ -= steps;
    return {std::exchange(next_, next_ + 16 * steps), 1, nullptr};
  }

 private:
  std::int64_t whole_, last_;
  bool alone_, few_;
  const float* next_;
  std::int64_t next_lines_;
};

/// Computes a block of C from its tiles of A and panels of B.
template <class V, class E>
void panel_gemm(const PackedGemm& p) {
  constexpr std::int64_t min_groups_to_prefetch_c = 64;
  Prefetcher prefetcher(p);
  for (std::int64_t from = 0; from < p.k_groups; from += panel_kc) {
    const std::int64_t steps = p.k_groups - from < panel_kc ? p.k_groups - from : panel_kc;
    for (std::int64_t n = 0; n < p.n; n += panel_nr) {
      const float* b = p.b + n * p.k_groups + from * panel_nr;
      const std::int64_t width = p.n - n < panel_nr ? p.n - n : panel_nr;
      for (std::int64_t m = 0; m < p.m; m += p.mr) {
        const std::int64_t height = p.m - m < p.mr ? p.m - m : p.mr;
        float* c = p.c + m * p.ldc + n;
        const float* next_c = m + p.mr < p.m ? c + p.mr * p.ldc : p.c + n + panel_nr;
        Prefetch ahead = prefetcher.next(b, n, steps, m / p.mr);
        if (steps >= min_groups_to_prefetch_c) ahead.c = next_c;
        panel_tile_of<V, E>(height, {p.a + m * p.k_groups + from * height, b, steps, ahead, c,
                                     p.ldc, width, from > 0 || p.accumulate});
      }
    }
  }
}

template <class V, class E>
constexpr GemmKernel panel_kernel() {
  return {.mr = E::mr,
          .nr = panel_nr,
          .k_pack = E::k_pack,
          .k_align = 1,
          .k_split = E::k_pack,
          .pack = pack_elements<V, E>,
          .gemm = panel_gemm<V, E>};
}

}  // namespace troupe::engine::ops::cpu::kernels

// Products from packed operands: A in tiles of some rows, [step][row], B in panels of 32 columns,
// [step][column], both one word a step of k. A tile's rows are broadcast against the panel's two
// vectors, so each element of C is one chain of multiply-adds in the order of k, which continues
// from C when accumulating, whatever the tile, the panel and the blocks of k: so a gradient summed
// over two micro-batches has the bits of one summed over both at once. A word is one float, or two
// bf16 values of consecutive k (Singles and Pairs below). Nothing here knows how many rows a
// product has.
#pragma once

#include <bit>
#include <utility>

#include "engine/ops/cpu/kernels.h"

namespace troupe::engine::ops::kernels {

/// f32: a step is one k.
template <class V>
struct Singles {
  static constexpr int rows = V::single_rows, step = 1;
  using Right = V;
  [[gnu::always_inline]] static Right right(const float* words) { return V::load(words); }
  [[gnu::always_inline]] static V add(float left, Right right, V sum) {
    return V::fma(V::set(left), right, sum);
  }
  /// Sixteen words from 16 * step values that lie together, of which `count` are there.
  [[gnu::always_inline]] static V along(const float* from, std::int64_t count) {
    return V::load(from, V::first(count));
  }
  /// One word of each of sixteen neighbours, from rows of k that are `apart`, of which `depth` are
  /// there.
  [[gnu::always_inline]] static V across(const float* from, std::int64_t, std::int64_t,
                                         decltype(V::first(0)) mask) {
    return V::load(from, mask);
  }
};

/// bf16 in pairs: a step is two k, the first in a word's upper half, which is added first. Products
/// of two bf16 values are exact in f32, so this is the arithmetic of AVX-512-BF16's vdpbf16ps
/// (Intel SDM vol. 2, VDPBF16PS), but for subnormal sums, which that flushes to zero.
template <class V>
struct Pairs {
  static constexpr int rows = V::pair_rows, step = 2;
  struct Right {
    V first, second;
  };
  [[gnu::always_inline]] static Right right(const float* words) {
    const V both = V::load(words);
    return {V::first_of(both), V::second_of(both)};
  }
  /// Of values that are bf16 already.
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
  [[gnu::always_inline]] static V across(const float* from, std::int64_t apart, std::int64_t depth,
                                         decltype(V::first(0)) mask) {
    const V second = depth > 1 ? V::load(from + apart, mask) : V::zero();
    return V::pair(V::round_bf16(V::load(from, mask)), V::round_bf16(second));
  }
};

template <class V, class E>
void pack_words(const Packing& p, float* to) {
  const std::int64_t steps = (p.depth + E::step - 1) / E::step;
  if (p.width == 1 && !p.items_together) {  // one item: its values lie as they shall
    for (std::int64_t s = 0; s < steps; s += 16)
      E::along(p.from + s * E::step, p.depth - s * E::step).store(to + s, V::first(steps - s));
    return;
  }
  const std::int64_t next = p.width < 16 ? p.width : 16;
  for (std::int64_t item = 0; item < p.width; item += 16) {
    const auto room = V::first(p.width - item), there = V::first(p.count - item);
    float* target = to + item;
    if (p.items_together) {
      for (std::int64_t s = 0; s < steps; ++s, target += p.width) {
        for (std::int64_t row = 0; row < E::step; ++row)
          __builtin_prefetch(p.from + (s * E::step + row + rows_ahead) * p.apart + item, 0, 2);
        E::across(p.from + s * E::step * p.apart + item, p.apart, p.depth - s * E::step, there)
            .store(target, room);
      }
      continue;
    }
    for (std::int64_t s = 0; s < steps; s += 16) {
      V words[16];
      // Of the same rows, or of the next ones.
      const std::int64_t ahead = s * E::step + values_ahead < p.depth
                                     ? values_ahead
                                     : values_ahead - p.depth + next * p.apart;
      for (std::int64_t i = 0; i < 16; ++i) {
        const float* from = p.from + (item + i) * p.apart + s * E::step;
        for (std::int64_t line = 0; line < E::step; ++line)
          __builtin_prefetch(from + ahead + 16 * line);
        words[i] = item + i < p.count ? E::along(from, p.depth - s * E::step) : V::zero();
      }
      V::transpose(words);
      for (std::int64_t i = 0; i < 16 && s + i < steps; ++i, target += p.width)
        words[i].store(target, room);
    }
  }
}

/// What a tile has fetched while it is made: `lines` of `words` in each step, and C of the next
/// tile (nullptr: nothing).
struct Ahead {
  const float* words;
  int lines;
  const float* c;
};

/// `width`: vectors of the panel's two that are wanted. What is fetched far ahead comes into the
/// first-level cache where a tile leaves it room there, else into the second.
template <class V, class E, int M, int width, int lines>
[[gnu::always_inline]] inline void panel_steps(const float* a, const float* b, std::int64_t steps,
                                               const float* ahead, V (&sums)[M][width]) {
  constexpr int level = lines > 1 && M < 10 ? 3 : 2;
  for (std::int64_t s = 0; s < steps; ++s, a += M, b += panel_columns) {
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

/// C [M, n <= 16 width] = or += over `steps` words, from a tile [steps][M] and a panel [steps][32].
template <class V, class E, int M, int width>
[[gnu::noinline]] void panel_tile(const float* a, const float* b, std::int64_t steps, Ahead ahead,
                                  float* c, std::int64_t ldc, std::int64_t n, bool add) {
  // By a mask both: what is stored otherwise the baseline keeps in memory, not in registers.
  const auto all = V::first(16), last = V::first(n - 16 * (width - 1));
  V sums[M][width];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    if constexpr (width > 1) sums[i][0] = add ? V::load(c + i * ldc, all) : V::zero();
    sums[i][width - 1] = add ? V::load(c + i * ldc + 16 * (width - 1), last) : V::zero();
  }
  if (ahead.c != nullptr) {
    for (int i = 0; i < M; ++i)
      __builtin_prefetch(ahead.c + i * ldc, 1), __builtin_prefetch(ahead.c + i * ldc + 16, 1);
  }
  switch (ahead.lines) {
    case 0:
      panel_steps<V, E, M, width, 0>(a, b, steps, nullptr, sums);
      break;
    case 1:
      panel_steps<V, E, M, width, 1>(a, b, steps, ahead.words, sums);
      break;
    default:
      panel_steps<V, E, M, width, 2>(a, b, steps, ahead.words, sums);
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    if constexpr (width > 1) sums[i][0].store(c + i * ldc, all);
    sums[i][width - 1].store(c + i * ldc + 16 * (width - 1), last);
  }
}

template <class V, class E, int M = E::rows>
[[gnu::always_inline]] inline void panel_tile_of(std::int64_t rows, const float* a, const float* b,
                                                 std::int64_t steps, Ahead ahead, float* c,
                                                 std::int64_t ldc, std::int64_t n, bool add) {
  if constexpr (M > 0) {
    if (rows == M && n > 16) return panel_tile<V, E, M, 2>(a, b, steps, ahead, c, ldc, n, add);
    if (rows == M) return panel_tile<V, E, M, 1>(a, b, steps, ahead, c, ldc, n, add);
    panel_tile_of<V, E, M - 1>(rows, a, b, steps, ahead, c, ldc, n, add);
  }
}

/// What the tiles of a block have fetched. With few of them a panel comes from memory, and the
/// processor's own prefetching does not look far enough: a tile that is alone fetches what it will
/// read itself soon; of more, the first two fetch the next panel, half of it each, while the later
/// ones read theirs from a cache, and of the first panel, which nobody fetched, the first tile does
/// as if it were alone. Other tiles, until it is there, fetch what comes after the product, a line
/// a step.
class Fetching {
 public:
  explicit Fetching(const PanelProduct& p)
      : whole_(p.steps * panel_columns),
        last_(p.n - panel_columns),
        alone_(p.m <= p.rows),
        few_(!alone_ && p.m <= 4 * p.rows),
        next_(p.next),
        next_lines_(p.next_lines) {}
  /// b: of the panel of column n, which has so many steps.
  Ahead ahead(const float* b, std::int64_t n, std::int64_t steps, std::int64_t tile) {
    constexpr std::int64_t words_ahead = 4096;
    if (tile == 0 && (alone_ || (few_ && n == 0))) return {b + words_ahead, 2, nullptr};
    if (few_ && tile < 2 && n < last_)
      return {b + whole_ + tile * steps * (panel_columns / 2), 1, nullptr};
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

/// A block of C from its tiles of A and panels of B. `steps`: words of the whole k, which tiles and
/// panels hold.
template <class V, class E>
void panel_product(const PanelProduct& p) {
  constexpr std::int64_t worth_fetching_c = 64;
  Fetching fetching(p);
  for (std::int64_t from = 0; from < p.steps; from += panel_depth) {
    const std::int64_t steps = p.steps - from < panel_depth ? p.steps - from : panel_depth;
    for (std::int64_t n = 0; n < p.n; n += panel_columns) {
      const float* b = p.b + n * p.steps + from * panel_columns;
      const std::int64_t width = p.n - n < panel_columns ? p.n - n : panel_columns;
      for (std::int64_t m = 0; m < p.m; m += p.rows) {
        const std::int64_t height = p.m - m < p.rows ? p.m - m : p.rows;
        float* c = p.c + m * p.ldc + n;
        const float* next_c = m + p.rows < p.m ? c + p.rows * p.ldc : p.c + n + panel_columns;
        Ahead ahead = fetching.ahead(b, n, steps, m / p.rows);
        if (steps >= worth_fetching_c) ahead.c = next_c;
        panel_tile_of<V, E>(height, p.a + m * p.steps + from * height, b, steps, ahead, c, p.ldc,
                            width, from > 0 || p.accumulate);
      }
    }
  }
}

template <class V, class E>
constexpr Panels panels() {
  return {.rows = E::rows,
          .columns = panel_columns,
          .step = E::step,
          .together = 1,
          .part = E::step,
          .pack = pack_words<V, E>,
          .product = panel_product<V, E>};
}

}  // namespace troupe::engine::ops::kernels

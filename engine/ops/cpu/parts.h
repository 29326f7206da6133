// How a product's operands are cut: into parts that a core's own cache holds, and that threads
// share out evenly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/ops/cpu/kernels.h"

namespace troupe::engine::ops {

/// Multiplications of a product that is worth more than one thread.
inline constexpr std::int64_t worth_waking = 250'000;
/// Of an operand so much that it stays in the second-level cache beside a panel of the other.
inline constexpr std::int64_t words_at_once = 100'000;
/// The same beside what the next part is packed from.
inline constexpr std::int64_t words_beside_next = 44'000;

/// Zeros for the product of no k, unless it adds.
inline void clear(std::int64_t m, std::int64_t n, float* c, std::int64_t ldc, bool accumulate) {
  for (std::int64_t i = 0; i < m && !accumulate; ++i) std::fill_n(c + i * ldc, n, 0.0F);
}

/// Long sums go in parts, each from operands of its own, so that what a core packs stays in its
/// cache; elements go on from what they are.
inline std::vector<Product> parts_of_sum(const Product& p, bool b_is_transposed,
                                         const Panels& with) {
  constexpr std::int64_t words_of_part = 1024;
  const std::int64_t depth = p.a_k == 1 ? words_of_part * with.step : p.k;
  std::vector<Product> parts;
  for (std::int64_t k = 0; k < p.k; k += depth) {
    Product part = p;
    part.k = std::min(depth, p.k - k), part.accumulate = k > 0 || p.accumulate;
    part.a += k * p.a_k, part.b += b_is_transposed ? k : k * p.ldb;
    parts.push_back(part);
  }
  return parts;
}

struct Part {
  std::int64_t first, count;
};
/// [0, count) in as many sections as threads, each in parts of at most `most`, which become smaller
/// towards its end: so the threads, which begin with a section each, end at about one time.
inline std::vector<Part> parts_of(std::int64_t count, std::int64_t most, int threads) {
  std::vector<Part> parts;
  for (int thread = 0; thread < threads; ++thread) {
    const std::int64_t end = (thread + 1) * count / threads;
    for (std::int64_t first = thread * count / threads; first < end; first += parts.back().count) {
      const std::int64_t left = end - first,
                         share = threads == 1 ? left : std::max<std::int64_t>(2, left / 3);
      parts.push_back({first, std::min({most, share, left})});
    }
  }
  return parts;
}

/// Blocks of C, some for each thread where the product is worth it.
struct Blocks {
  std::int64_t m, n, height, width;
  std::int64_t down() const { return (m + height - 1) / height; }
  std::int64_t count() const { return down() * ((n + width - 1) / width); }
  /// Halves the blocks, along their longer side, down to these sizes.
  void cut_for(int threads, std::int64_t least_height, std::int64_t least_width) {
    while (threads > 1 && count() < 3 * threads && (height > least_height || width > least_width)) {
      const bool tall = std::min(height, m) > std::min(width, n);
      if ((tall && height > least_height) || width <= least_width)
        height = (height / least_height + 1) / 2 * least_height;
      else
        width = (width / least_width + 1) / 2 * least_width;
    }
  }
};

}  // namespace troupe::engine::ops

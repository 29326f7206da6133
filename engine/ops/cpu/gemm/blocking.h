// Blocking of products: ranges that fit a core's own cache and balance the load of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/ops/cpu/kernels/kernels.h"

namespace troupe::engine::ops::cpu {

/// Elements of an operand that stay in the L2 cache beside a panel of the other operand.
inline constexpr std::int64_t l2_elements = 100'000;
/// The same, beside the memory that the next range is packed from.
inline constexpr std::int64_t l2_elements_with_prefetch = 44'000;

/// Zeros C of a product without k, unless it accumulates.
inline void clear_c(std::int64_t m, std::int64_t n, float* c, std::int64_t ldc, bool accumulate) {
  for (std::int64_t i = 0; i < m && !accumulate; ++i) std::fill_n(c + i * ldc, n, 0.0F);
}

/// Splits long sums, so that the operands that a core packs stay in its cache. All parts but the
/// first accumulate.
inline std::vector<GemmArgs> split_k(const GemmArgs& p, bool b_is_transposed,
                                     const GemmKernel& kernel) {
  constexpr std::int64_t max_k_groups = 1024;
  const std::int64_t depth = p.cs_a == 1 ? max_k_groups * kernel.k_pack : p.k;
  std::vector<GemmArgs> parts;
  for (std::int64_t k = 0; k < p.k; k += depth) {
    GemmArgs part = p;
    part.k = std::min(depth, p.k - k);
    part.accumulate = k > 0 || p.accumulate;
    part.a += k * p.cs_a;
    part.b += b_is_transposed ? k : k * p.ldb;
    parts.push_back(part);
  }
  return parts;
}

struct Range {
  std::int64_t first, count;
};
/// Splits [0, count) into one section per thread, and each section into ranges of at most
/// `max_count`, which become smaller towards its end. So threads, which start with a section each,
/// finish at about the same time.
inline std::vector<Range> balanced_ranges(std::int64_t count, std::int64_t max_count, int threads) {
  std::vector<Range> parts;
  for (int thread = 0; thread < threads; ++thread) {
    const std::int64_t end = (thread + 1) * count / threads;
    for (std::int64_t first = thread * count / threads; first < end; first += parts.back().count) {
      const std::int64_t left = end - first,
                         share = threads == 1 ? left : std::max<std::int64_t>(2, left / 3);
      parts.push_back({first, std::min({max_count, share, left})});
    }
  }
  return parts;
}

/// Blocks of C.
struct BlockGrid {
  std::int64_t m, n, height, width;
  std::int64_t down() const { return (m + height - 1) / height; }
  std::int64_t count() const { return down() * ((n + width - 1) / width); }
  /// Halves the blocks along their longer side, down to these sizes, until each thread has three.
  void split_for(int threads, std::int64_t min_height, std::int64_t min_width) {
    while (threads > 1 && count() < 3 * threads && (height > min_height || width > min_width)) {
      const bool tall = std::min(height, m) > std::min(width, n);
      if ((tall && height > min_height) || width <= min_width)
        height = (height / min_height + 1) / 2 * min_height;
      else
        width = (width / min_width + 1) / 2 * min_width;
    }
  }
};

}  // namespace troupe::engine::ops::cpu

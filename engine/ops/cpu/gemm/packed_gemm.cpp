#include "engine/ops/cpu/gemm/packed_gemm.h"

#include <algorithm>

#include "engine/ops/cpu/gemm/blocking.h"

namespace troupe::engine::ops::cpu {
namespace {

std::int64_t tiles_per_block(std::int64_t rows, std::int64_t steps) {
  return std::clamp<std::int64_t>(l2_elements / (rows * std::min(steps, panel_kc)), 2, 14);
}

/// Splits panels evenly, into equally many ranges for each thread: the first elements of a range
/// have not been prefetched.
std::vector<Range> even_ranges(std::int64_t panels, int threads) {
  constexpr std::int64_t maximum = 32;
  const std::int64_t count = threads * ((panels + threads * maximum - 1) / (threads * maximum));
  std::vector<Range> parts;
  for (std::int64_t i = 0; i < count; ++i)
    parts.push_back({i * panels / count, (i + 1) * panels / count - i * panels / count});
  return parts;
}

/// Splits a product into blocks: by rows if it has many, otherwise by columns, or by both if it has
/// few of either.
void split_among_threads(const PackedGemm& p, int threads, std::vector<PackedGemm>& into) {
  const std::int64_t tiles = (p.m + p.mr - 1) / p.mr, at_once = tiles_per_block(p.mr, p.k_groups);
  const auto add = [&](std::int64_t m, std::int64_t rows, std::int64_t n, std::int64_t columns) {
    PackedGemm part = p;
    part.m = std::min(rows, p.m - m);
    part.n = std::min(columns, p.n - n);
    part.a += m * p.k_groups;
    part.b += n * p.k_groups;
    part.c += m * p.ldc + n;
    into.push_back(part);
  };
  if (tiles >= 6 * threads) {
    for (const Range& part : balanced_ranges(tiles, at_once, threads))
      add(part.first * p.mr, part.count * p.mr, 0, p.n);
    return;
  }
  const std::int64_t panels = padded_columns(p.n) / panel_nr;
  if (panels >= threads) {
    for (const Range& part : even_ranges(panels, threads))
      add(0, p.m, part.first * panel_nr, part.count * panel_nr);
    return;
  }
  BlockGrid blocks{p.m, p.n, p.mr * at_once, 512};
  blocks.split_for(threads, p.mr, panel_nr);
  for (std::int64_t n = 0; n < p.n; n += blocks.width) {
    for (std::int64_t m = 0; m < p.m; m += blocks.height) add(m, blocks.height, n, blocks.width);
  }
}

/// Reorders parts so that those that a thread starts with are contiguous. `ends`: the end of each
/// product's parts.
std::vector<PackedGemm> order_by_thread(const std::vector<PackedGemm>& parts,
                                        const std::vector<std::int64_t>& ends,
                                        const ThreadPool& pool) {
  std::vector<PackedGemm> all;
  for (int thread = 0; thread < pool.threads(); ++thread) {
    std::int64_t first = 0;
    for (const std::int64_t last : ends) {
      const auto [begin, end] = pool.slice(last - first, thread);
      all.insert(all.end(), parts.begin() + first + begin, parts.begin() + first + end);
      first = last;
    }
  }
  return all;
}

}  // namespace

void packed_gemm(const Context& context, const GemmKernel& kernel,
                 std::span<const PackedGemm> products) {
  std::vector<PackedGemm> parts;
  std::vector<std::int64_t> ends;
  std::int64_t work = 0;
  for (const PackedGemm& p : products) {
    if (p.k_groups == 0) {
      clear_c(p.m, p.n, p.c, p.ldc, p.accumulate);
      continue;
    }
    work += p.m * p.n * p.k_groups;
    split_among_threads(p, p.m * p.n * p.k_groups < parallel_threshold ? 1 : context.pool.threads(),
                        parts);
    if (products.size() > 1) ends.push_back(std::ssize(parts));
  }
  if (ends.size() > 1 && context.pool.threads() > 1)
    parts = order_by_thread(parts, ends, context.pool);
  context.parallel_for(std::ssize(parts), work, [&](std::int64_t part, int) {
    kernel.gemm(parts[static_cast<std::size_t>(part)]);
  });
}

void gemm_packing_a(const Context& context, const GemmKernel& kernel,
                    std::span<const UnpackedGemm> products) {
  const std::int64_t m = products[0].gemm.m, height = products[0].gemm.mr;
  std::int64_t steps = 0, work = 0;
  for (const auto& [left, p] : products) {
    steps = std::max(steps, p.k_groups);
    work += p.m * p.n * p.k_groups;
  }
  const auto parts = balanced_ranges((m + height - 1) / height, tiles_per_block(height, steps),
                                     context.pool.threads());
  context.parallel_for(std::ssize(parts), work, [&](std::int64_t item, int worker) {
    const std::int64_t first = parts[static_cast<std::size_t>(item)].first * height;
    const std::int64_t rows =
        std::min(parts[static_cast<std::size_t>(item)].count * height, m - first);
    float* packed = context.workspace.tiles(worker).need(rows * steps);
    const float* packed_from = nullptr;
    for (const auto& [left, whole] : products) {
      for (std::int64_t i = 0; i < rows && left.from != packed_from; i += height) {
        const std::int64_t tall = std::min(height, rows - i);
        kernel.pack({left.from + (first + i) * left.ld, left.ld, tall, left.k, tall, false},
                    packed + i * whole.k_groups);
      }
      packed_from = left.from;
      PackedGemm part = whole;
      part.m = rows;
      part.a = packed;
      part.c += first * part.ldc;
      kernel.gemm(part);
    }
  });
}

namespace {

/// Panels of one of several products.
struct PanelRange {
  std::size_t product;
  Range panels;
};
/// Splits the panels of all products, in order. A range does not extend over two products.
std::vector<PanelRange> panel_ranges_of(std::span<const UnpackedGemm> products, std::int64_t width,
                                        std::int64_t maximum, int threads) {
  const auto panels = [&](std::size_t i) { return (products[i].gemm.n + width - 1) / width; };
  std::int64_t total = 0, before = 0;
  for (std::size_t i = 0; i < products.size(); ++i) total += panels(i);
  std::vector<PanelRange> columns;
  std::size_t at = 0;
  for (auto [first, count] : balanced_ranges(total, maximum, threads)) {
    for (std::int64_t taken = 0; count > 0; first += taken, count -= taken) {
      while (first >= before + panels(at)) before += panels(at++);
      taken = std::min(count, before + panels(at) - first);
      columns.push_back({at, {first - before, taken}});
    }
  }
  return columns;
}

/// Makes `by` prefetch the columns that a thread packs next, if they are contiguous.
void prefetch_columns_of(const UnpackedGemm& of, const Range& panels, std::int64_t width,
                         PackedGemm& by) {
  const PackArgs& items = of.items;
  if (items.ld != items.k) return;
  const std::int64_t n = panels.first * width,
                     columns = std::min(panels.count * width, of.gemm.n - n);
  by.next = items.from + n * items.ld;
  by.next_lines = columns * items.ld / 16;
}

}  // namespace

void gemm_packing_b(const Context& context, const GemmKernel& kernel,
                    std::span<const UnpackedGemm> products) {
  const std::int64_t steps = products[0].gemm.k_groups, m = products[0].gemm.m;
  const bool prefetches = &kernel != &context.kernels.gemm_f32_dot;
  const std::int64_t room = prefetches ? l2_elements_with_prefetch : l2_elements;
  const std::int64_t maximum =
      std::clamp<std::int64_t>(room / (steps * kernel.nr), 1, 512 / kernel.nr);
  const std::int64_t height = products[0].gemm.mr * tiles_per_block(products[0].gemm.mr, steps);
  const auto parts = panel_ranges_of(products, kernel.nr, maximum, context.pool.threads());
  std::int64_t work = 0;
  for (const auto& [right, p] : products) work += p.m * p.n * p.k_groups;
  context.parallel_for(std::ssize(parts), work, [&](std::int64_t item, int worker) {
    const auto& [place, panels] = parts[static_cast<std::size_t>(item)];
    const auto& [right, whole] = products[place];
    const std::int64_t n = panels.first * kernel.nr;
    PackedGemm part = whole;
    part.n = std::min(panels.count * kernel.nr, whole.n - n);
    float* packed = context.workspace.tiles(worker).need(panels.count * kernel.nr * steps);
    for (std::int64_t j = 0; j < part.n; j += kernel.nr) {
      const std::int64_t columns = std::min(kernel.nr, part.n - j);
      kernel.pack({right.from + (n + j) * right.ld, right.ld, columns, right.k, kernel.nr, false},
                  packed + j * steps);
    }
    part.b = packed;
    if (prefetches && item + 1 < std::ssize(parts)) {
      const PanelRange& next = parts[static_cast<std::size_t>(item) + 1];
      prefetch_columns_of(products[next.product], next.panels, kernel.nr, part);
    }
    for (std::int64_t row = 0; row < m; row += height, part.next_lines = 0) {
      part.m = std::min(height, m - row);
      part.a = whole.a + row * steps;
      part.c = whole.c + row * whole.ldc + n;
      kernel.gemm(part);
    }
  });
}

}  // namespace troupe::engine::ops::cpu

#include "engine/ops/cpu/gemm/packing.h"

#include <algorithm>

namespace troupe::engine::ops::cpu {

void pack_panels(const Context& context, const GemmKernel& kernel, const PackArgs& items,
                 float* to) {
  const std::int64_t all_groups = kernel.k_groups(items.k),
                     panels = (items.count + items.width - 1) / items.width;
  const auto pack = [&](std::int64_t panel, std::int64_t k, std::int64_t depth) {
    const std::int64_t i = panel * items.width;
    PackArgs part = items;
    part.from += items.items_contiguous ? i + k * items.ld : i * items.ld + k;
    part.count = std::min(items.width, items.count - i);
    part.k = depth;
    kernel.pack(part, to + i * all_groups + kernel.k_groups(k) * items.width);
  };
  if (!items.items_contiguous) {
    return context.parallel_ranges(panels, items.width * items.k, 1,
                                   [&](std::int64_t begin, std::int64_t end, int) {
                                     for (std::int64_t panel = begin; panel < end; ++panel)
                                       pack(panel, 0, items.k);
                                   });
  }
  // Each thread packs a few rows of k into all panels before it reads the next rows: a single panel
  // takes only a line or two of each row, which may all map to one cache set, each in its own page.
  const std::int64_t rows_at_once = std::max<std::int64_t>(16, kernel.k_split);
  context.parallel_ranges((items.k + rows_at_once - 1) / rows_at_once, rows_at_once * items.count,
                          1, [&](std::int64_t begin, std::int64_t end, int) {
                            for (std::int64_t k = begin * rows_at_once;
                                 k < std::min(items.k, end * rows_at_once); k += rows_at_once) {
                              for (std::int64_t panel = 0; panel < panels; ++panel)
                                pack(panel, k, std::min(rows_at_once, items.k - k));
                            }
                          });
}

void pack_tiles(const Context& context, const GemmKernel& kernel, const PackArgs& items,
                float* to) {
  const std::int64_t whole = items.count / items.width * items.width, rest = items.count - whole;
  PackArgs part = items;
  part.count = whole;
  pack_panels(context, kernel, part, to);
  if (rest == 0) return;
  part.from += whole * (items.items_contiguous ? 1 : items.ld);
  part.count = part.width = rest;
  kernel.pack(part, to + whole * kernel.k_groups(items.k));
}

const float* pack_a(const Context& context, const GemmKernel& kernel, const PackArgs& items) {
  float* packed = context.workspace.packed_a.need(kernel.k_groups(items.k) * items.count);
  pack_tiles(context, kernel, items, packed);
  return packed;
}

}  // namespace troupe::engine::ops::cpu

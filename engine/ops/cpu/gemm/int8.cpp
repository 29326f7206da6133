#include "engine/ops/cpu/gemm/int8.h"

#include <algorithm>

#include "engine/ops/cpu/gemm/blocking.h"

namespace troupe::engine::ops::cpu {
namespace {

std::int64_t panels_of(std::int64_t n) {
  return padded_columns(n) / panel_nr;
}

void scale_panel(const PackedGemm& p, std::int64_t column, const float* scales) {
  const std::int64_t width = std::min(panel_nr, p.n - column);
  for (std::int64_t i = 0; i < p.m; ++i) {
    float* row = p.c + i * p.ldc + column;
    for (std::int64_t j = 0; j < width; ++j) row[j] *= scales[j];
  }
}

}  // namespace

void pack_int8_weight(const Context& context, const Tensor& weight, Tensor& packed) {
  const std::int64_t n = rows_of(weight), k = width_of(weight),
                     bytes = int8_panel(context.kernels.gemm_bf16.k_groups(k));
  const float* from = data(weight);
  auto* to = reinterpret_cast<std::int8_t*>(raw(packed));
  context.parallel_ranges(
      panels_of(n), panel_nr * k, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t panel = begin; panel < end; ++panel) {
          const std::int64_t item = panel * panel_nr;
          context.kernels.gemm_int8.pack(
              {from + item * k, k, std::min(panel_nr, n - item), k, panel_nr, false},
              to + panel * bytes);
        }
      });
}

void gemm_int8(const Context& context, const PackedGemm& p) {
  const std::int64_t bytes = int8_panel(p.k_groups), elements = p.k_groups * panel_nr;
  const bool few = p.m <= 2 * p.mr;
  const auto parts = balanced_ranges(
      panels_of(p.n), few ? 16 : std::clamp<std::int64_t>(l2_elements / elements, 1, 16),
      context.pool.threads());
  context.parallel_for(
      std::ssize(parts), p.m * p.n * p.k_groups, [&](std::int64_t item, int worker) {
        const auto [first, panels] = parts[static_cast<std::size_t>(item)];
        const auto* numbers = reinterpret_cast<const std::int8_t*>(p.b) + first * bytes;
        PackedGemm part = p;
        part.n = std::min(panels * panel_nr, p.n - first * panel_nr);
        part.c += first * panel_nr;
        part.b = reinterpret_cast<const float*>(numbers);
        if (few) return context.kernels.gemm_int8.gemm(part);
        float* wide = context.workspace.tiles(worker).need(panels * elements);
        for (std::int64_t panel = 0; panel < panels; ++panel)
          context.kernels.gemm_int8.widen(numbers + panel * bytes, p.k_groups,
                                          wide + panel * elements);
        part.b = wide;
        context.kernels.gemm_bf16.gemm(part);
        for (std::int64_t panel = 0; panel < panels; ++panel)
          scale_panel(part, panel * panel_nr,
                      reinterpret_cast<const float*>(numbers + panel * bytes));
      });
}

}  // namespace troupe::engine::ops::cpu

// The fast device's products with weights of whole numbers (kernels_int8.h).
#include <algorithm>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {
namespace {

std::int64_t panels_of(std::int64_t n) {
  return panels_width(n) / panel_columns;
}

void scale_panel(const PanelProduct& p, std::int64_t column, const float* scales) {
  const std::int64_t width = std::min(panel_columns, p.n - column);
  for (std::int64_t i = 0; i < p.m; ++i) {
    float* row = p.c + i * p.ldc + column;
    for (std::int64_t j = 0; j < width; ++j) row[j] *= scales[j];
  }
}

}  // namespace

void FastDevice::pack_int8(const Tensor& weight, Tensor& packed) {
  const std::int64_t n = rows_of(weight), k = width_of(weight),
                     bytes = int8_panel(kernels_.pairs.steps(k));
  const float* from = in(weight);
  auto* to = reinterpret_cast<std::int8_t*>(raw(packed));
  share(panels_of(n), panel_columns * k, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      const std::int64_t item = panel * panel_columns;
      kernels_.whole.pack(
          {from + item * k, k, std::min(panel_columns, n - item), k, panel_columns, false},
          to + panel * bytes);
    }
  });
}

// Few rows read the numbers as they are; more of them a copy in bf16 that stays in a core's own
// cache.
void FastDevice::product_with_int8(const PanelProduct& p) {
  const std::int64_t bytes = int8_panel(p.steps), words = p.steps * panel_columns;
  const bool few = p.m <= 2 * p.rows;
  const auto parts =
      parts_of(panels_of(p.n), few ? 16 : std::clamp<std::int64_t>(words_at_once / words, 1, 16),
               pool_.threads());
  spread(std::ssize(parts), p.m * p.n * p.steps, [&](std::int64_t item, int worker) {
    const auto [first, panels] = parts[static_cast<std::size_t>(item)];
    const auto* numbers = reinterpret_cast<const std::int8_t*>(p.b) + first * bytes;
    PanelProduct part = p;
    part.n = std::min(panels * panel_columns, p.n - first * panel_columns),
    part.c += first * panel_columns;
    part.b = reinterpret_cast<const float*>(numbers);
    if (few) return kernels_.whole.product(part);
    float* wide = score_scratch_[static_cast<std::size_t>(worker)].need(panels * words);
    for (std::int64_t panel = 0; panel < panels; ++panel)
      kernels_.whole.widen(numbers + panel * bytes, p.steps, wide + panel * words);
    part.b = wide;
    kernels_.pairs.product(part);
    for (std::int64_t panel = 0; panel < panels; ++panel)
      scale_panel(part, panel * panel_columns,
                  reinterpret_cast<const float*>(numbers + panel * bytes));
  });
}

}  // namespace troupe::engine::ops

// The fast device's matrix products: which kernel takes one, and how its parts are shared out to the threads.
#include <algorithm>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {
namespace {

constexpr std::int64_t worth_waking = 250'000;  // multiplications

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

}  // namespace

void FastDevice::product(Kind kind, const Product& p, Precision precision) {
  if (p.m == 0 || p.n == 0) return;
  if (precision == Precision::bf16) return panels(kernels_.pairs, kind, p);
  if (kind == Kind::outer && p.m > 2 * kernels_.singles.rows && p.n > 16 && p.m * p.n * p.k >= worth_waking)
    return panels(kernels_.singles, kind, p);
  const auto kernel = kind == Kind::dot ? kernels_.dot_product : kernels_.outer_product;
  const int threads = p.m * p.n * p.k < worth_waking ? 1 : pool_.threads();
  if (threads == 1) return kernel(p, scratch(0));
  Blocks blocks{p.m, p.n, 192, kind == Kind::dot ? 256 : 512};
  blocks.cut_for(threads, 24, 64);
  pool_.run(blocks.count(), [&](std::int64_t block, int worker) {
    const std::int64_t m = block % blocks.down() * blocks.height, n = block / blocks.down() * blocks.width;
    Product part = p;
    part.m = std::min(blocks.height, p.m - m);
    part.n = std::min(blocks.width, p.n - n);
    part.a += m * p.a_row;
    part.b += kind == Kind::dot ? n * p.ldb : n;
    part.c += m * p.ldc + n;
    kernel(part, scratch(worker));
  });
}

void FastDevice::pack_panels(const Panels& with, Kind kind, const Product& p, float* to) {
  const std::int64_t steps = with.steps(p.k);
  share((p.n + panel_columns - 1) / panel_columns, panel_columns * p.k, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t n = begin * panel_columns; n < std::min(p.n, end * panel_columns); n += panel_columns) {
      const float* from = p.b + (kind == Kind::dot ? n * p.ldb : n);
      with.pack({from, p.ldb, std::min(panel_columns, p.n - n), p.k, panel_columns, kind == Kind::outer}, to + n * steps);
    }
  });
}

void FastDevice::panels(const Panels& with, Kind kind, const Product& p) {
  float* right = right_.need(with.steps(p.k) * ((p.n + panel_columns - 1) / panel_columns * panel_columns));
  pack_panels(with, kind, p, right);
  panels(with, p, right);
}

void FastDevice::panels(const Panels& with, const Product& p, const float* right) {
  const std::int64_t steps = with.steps(p.k);
  if (steps == 0) {
    for (std::int64_t i = 0; i < p.m && !p.accumulate; ++i) std::fill_n(p.c + i * p.ldc, p.n, 0.0F);
    return;
  }
  // Tiles of about one height: of 16 rows two times 8, as a tile of two would wait for its own sums.
  const std::int64_t tiles = (p.m + with.rows - 1) / with.rows, rows = (p.m + tiles - 1) / tiles;
  float* left = left_.need(steps * p.m);
  share(tiles, rows * p.k, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t m = begin * rows; m < std::min(p.m, end * rows); m += rows) {
      const std::int64_t height = std::min(rows, p.m - m);
      with.pack({p.a + m * p.a_row, p.a_k == 1 ? p.a_row : p.a_k, height, p.k, height, p.a_k != 1}, left + m * steps);
    }
  });
  const int threads = p.m * p.n * p.k < worth_waking ? 1 : pool_.threads();
  // Of A so much that it stays in the second-level cache beside a panel.
  constexpr std::int64_t words_of_a = 100'000;
  Blocks blocks{p.m, p.n, rows * std::clamp<std::int64_t>(words_of_a / (rows * std::min(steps, panel_depth)), 4, 14), 512};
  blocks.cut_for(threads, rows, panel_columns);
  auto visit = [&](std::int64_t block, int) {
    const std::int64_t m = block % blocks.down() * blocks.height, n = block / blocks.down() * blocks.width;
    with.product({std::min(blocks.height, p.m - m), std::min(blocks.width, p.n - n), steps, rows, left + m * steps, right + n * steps,
                  p.c + m * p.ldc + n, p.ldc, p.accumulate});
  };
  if (threads > 1) return pool_.run(blocks.count(), visit);
  for (std::int64_t block = 0; block < blocks.count(); ++block) visit(block, 0);
}

Shape FastDevice::packed_shape(std::int64_t n, std::int64_t k) const {
  return {(n + panel_columns - 1) / panel_columns * panel_columns, kernels_.pairs.steps(k) * kernels_.pairs.step};
}

void FastDevice::pack(const Tensor& weight, Tensor& packed) {
  check(weight.shape().rank() == 2, "pack: a weight is a matrix");
  const std::int64_t n = rows_of(weight), k = width_of(weight);
  if (!packed) packed = empty(packed_shape(n, k), DType::bf16_packed);
  check(packed.dtype() == DType::bf16_packed && packed.shape() == packed_shape(n, k), "pack: a packed weight of another shape");
  const Product p{
      .m = 0, .n = n, .k = k, .a = nullptr, .a_row = 0, .a_k = 0, .b = in(weight), .ldb = k, .c = nullptr, .ldc = 0, .accumulate = false};
  pack_panels(kernels_.pairs, Kind::dot, p, reinterpret_cast<float*>(raw(packed)));
}

void FastDevice::gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) {
  const auto [m, n, k] = gemm_sizes(a, b, c, how);
  const bool packed = b.dtype() == DType::bf16_packed;
  const Product p{.m = m,
                  .n = n,
                  .k = k,
                  .a = in(a),
                  .a_row = how.transpose_a ? 1 : k,
                  .a_k = how.transpose_a ? m : 1,
                  .b = packed ? nullptr : in(b),
                  .ldb = how.transpose_b ? k : n,
                  .c = out(c),
                  .ldc = n,
                  .accumulate = how.accumulate};
  if (!packed) return product(how.transpose_b ? Kind::dot : Kind::outer, p, how.precision);
  check(b.shape() == packed_shape(n, k), "gemm: the packed weight has another shape");
  panels(kernels_.pairs, p, reinterpret_cast<const float*>(raw(b)));
}

}  // namespace troupe::engine::ops

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

void FastDevice::pack_panels(const Panels& with, const Packing& items, float* to) {
  const std::int64_t steps = with.steps(items.depth), panels = (items.count + items.width - 1) / items.width;
  const auto pack = [&](std::int64_t panel, std::int64_t k, std::int64_t depth) {
    const std::int64_t i = panel * items.width;
    Packing part = items;
    part.from += items.items_together ? i + k * items.apart : i * items.apart + k;
    part.count = std::min(items.width, items.count - i), part.depth = depth;
    with.pack(part, to + i * steps + k / with.step * items.width);
  };
  if (!items.items_together) {
    return share(panels, items.width * items.depth, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t panel = begin; panel < end; ++panel) pack(panel, 0, items.depth);
    });
  }
  // Some rows of k go to all panels before the next ones are read, each thread's own: a panel alone takes a line or two of each row, which
  // may all fall into one set of a cache, and from a page of its own.
  constexpr std::int64_t rows_at_once = 16;
  share((items.depth + rows_at_once - 1) / rows_at_once, rows_at_once * items.count, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t k = begin * rows_at_once; k < std::min(items.depth, end * rows_at_once); k += rows_at_once) {
      for (std::int64_t panel = 0; panel < panels; ++panel) pack(panel, k, std::min(rows_at_once, items.depth - k));
    }
  });
}

void FastDevice::pack_tiles(const Panels& with, const Packing& items, float* to) {
  const std::int64_t whole = items.count / items.width * items.width, rest = items.count - whole;
  Packing part = items;
  part.count = whole;
  pack_panels(with, part, to);
  if (rest == 0) return;
  part.from += whole * (items.items_together ? 1 : items.apart);
  part.count = part.width = rest;
  with.pack(part, to + whole * with.steps(items.depth));
}

void FastDevice::multiply(const Panels& with, const PanelProduct& p) {
  if (p.steps == 0) {
    for (std::int64_t i = 0; i < p.m && !p.accumulate; ++i) std::fill_n(p.c + i * p.ldc, p.n, 0.0F);
    return;
  }
  // Of A so much that it stays in the second-level cache beside a panel.
  constexpr std::int64_t words_of_a = 100'000;
  const std::int64_t work = p.m * p.n * p.steps;
  Blocks blocks{p.m, p.n, p.rows * std::clamp<std::int64_t>(words_of_a / (p.rows * std::min(p.steps, panel_depth)), 4, 14), 512};
  blocks.cut_for(work < worth_waking ? 1 : pool_.threads(), p.rows, panel_columns);
  spread(blocks.count(), work, [&](std::int64_t block, int) {
    const std::int64_t m = block % blocks.down() * blocks.height, n = block / blocks.down() * blocks.width;
    PanelProduct part = p;
    part.m = std::min(blocks.height, p.m - m), part.n = std::min(blocks.width, p.n - n);
    part.a += m * p.steps, part.b += n * p.steps, part.c += m * p.ldc + n;
    with.product(part);
  });
}

const float* FastDevice::pack_left(const Panels& with, const Product& p, std::int64_t& rows) {
  rows = with.tile(p.m);
  float* left = left_.need(with.steps(p.k) * p.m);
  pack_tiles(with, {p.a, p.a_k == 1 ? p.a_row : p.a_k, p.m, p.k, rows, p.a_k != 1}, left);
  return left;
}

void FastDevice::product(Kind kind, const Product& p, Precision precision) {
  if (p.m == 0 || p.n == 0) return;
  const bool large = p.m > 2 * kernels_.singles.rows && p.n > 16 && p.m * p.n * p.k >= worth_waking;
  if (precision == Precision::f32 && (kind == Kind::dot || !large)) return blocks_of_product(kind, p);
  const Panels& with = precision == Precision::bf16 ? kernels_.pairs : kernels_.singles;
  const std::int64_t steps = with.steps(p.k);
  std::int64_t rows = 0;
  const float* left = pack_left(with, p, rows);
  // A large B in parts, so that memory for it stays within bounds.
  constexpr std::int64_t most_words = std::int64_t{32} << 20;
  const std::int64_t most = std::max(panel_columns, most_words / std::max<std::int64_t>(steps, 1) / panel_columns * panel_columns);
  for (std::int64_t n = 0; n < p.n; n += most) {
    const std::int64_t columns = std::min(most, p.n - n);
    float* right = right_.need(steps * panels_width(columns));
    pack_panels(with, {p.b + (kind == Kind::dot ? n * p.ldb : n), p.ldb, columns, p.k, panel_columns, kind == Kind::outer}, right);
    multiply(with, {p.m, columns, steps, rows, left, right, p.c + n, p.ldc, p.accumulate});
  }
}

void FastDevice::blocks_of_product(Kind kind, const Product& p) {
  const auto kernel = kind == Kind::dot ? kernels_.dot_product : kernels_.outer_product;
  const std::int64_t work = p.m * p.n * p.k;
  if (work < worth_waking) return kernel(p, scratch(0));
  if (kind == Kind::dot && p.m <= direct_rows) return product_of_few_rows(p);
  Blocks blocks{p.m, p.n, 192, kind == Kind::dot ? 256 : 512};
  blocks.cut_for(pool_.threads(), 24, 64);
  spread(blocks.count(), work, [&](std::int64_t block, int worker) {
    const std::int64_t m = block % blocks.down() * blocks.height, n = block / blocks.down() * blocks.width;
    Product part = p;
    part.m = std::min(blocks.height, p.m - m), part.n = std::min(blocks.width, p.n - n);
    part.a += m * p.a_row, part.b += kind == Kind::dot ? n * p.ldb : n, part.c += m * p.ldc + n;
    kernel(part, scratch(worker));
  });
}

namespace {

Shape packed_shape(const Panels& pairs, std::int64_t n, std::int64_t k) { return {panels_width(n), pairs.steps(k) * pairs.step}; }

}  // namespace

void FastDevice::pack(const Tensor& weight, Tensor& packed) {
  check(weight.shape().rank() == 2, "pack: a weight is a matrix");
  const Shape shape = packed_shape(kernels_.pairs, rows_of(weight), width_of(weight));
  if (!packed) packed = empty(shape, DType::bf16_packed);
  check(packed.dtype() == DType::bf16_packed && packed.shape() == shape, "pack: a packed weight of another shape");
  pack_panels(kernels_.pairs, {in(weight), width_of(weight), rows_of(weight), width_of(weight), panel_columns, false},
              reinterpret_cast<float*>(raw(packed)));
}

void FastDevice::gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) {
  const auto [m, n, k] = gemm_sizes(a, b, c, how);
  Product p{.m = m,
            .n = n,
            .k = k,
            .a = in(a),
            .a_row = how.transpose_a ? 1 : k,
            .a_k = how.transpose_a ? m : 1,
            .b = nullptr,
            .ldb = how.transpose_b ? k : n,
            .c = out(c),
            .ldc = n,
            .accumulate = how.accumulate};
  if (b.dtype() != DType::bf16_packed) {
    p.b = in(b);
    return product(how.transpose_b ? Kind::dot : Kind::outer, p, how.precision);
  }
  check(b.shape() == packed_shape(kernels_.pairs, n, k), "gemm: the packed weight has another shape");
  if (m == 0 || n == 0) return;
  std::int64_t rows = 0;
  const float* left = pack_left(kernels_.pairs, p, rows);
  multiply(kernels_.pairs, {m, n, kernels_.pairs.steps(k), rows, left, reinterpret_cast<const float*>(raw(b)), p.c, n, how.accumulate});
}

}  // namespace troupe::engine::ops

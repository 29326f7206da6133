// The fast device's matrix products: which kernel takes one, and how its parts are shared out to the threads.
#include <algorithm>

#include "engine/ops/cpu/fast_device.h"
#include "engine/ops/cpu/parts.h"

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

std::int64_t tiles_at_once(std::int64_t rows, std::int64_t steps) {
  return std::clamp<std::int64_t>(words_at_once / (rows * std::min(steps, panel_depth)), 2, 14);
}

/// Even parts of some panels, as many for each thread: a part begins with words that nothing has fetched.
std::vector<Part> even_parts(std::int64_t panels, int threads) {
  constexpr std::int64_t most = 16;
  const std::int64_t count = threads * ((panels + threads * most - 1) / (threads * most));
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < count; ++i) parts.push_back({i * panels / count, (i + 1) * panels / count - i * panels / count});
  return parts;
}

/// Blocks of a product: by rows where it has many, else by columns, or by both where it has few of either.
void cut(const PanelProduct& p, int threads, std::vector<PanelProduct>& into) {
  const std::int64_t tiles = (p.m + p.rows - 1) / p.rows, at_once = tiles_at_once(p.rows, p.steps);
  const auto add = [&](std::int64_t m, std::int64_t rows, std::int64_t n, std::int64_t columns) {
    PanelProduct part = p;
    part.m = std::min(rows, p.m - m), part.n = std::min(columns, p.n - n);
    part.a += m * p.steps, part.b += n * p.steps, part.c += m * p.ldc + n;
    into.push_back(part);
  };
  if (tiles >= 6 * threads) {
    for (const Part& part : parts_of(tiles, at_once, threads)) add(part.first * p.rows, part.count * p.rows, 0, p.n);
    return;
  }
  const std::int64_t panels = panels_width(p.n) / panel_columns;
  if (panels >= threads) {
    for (const Part& part : even_parts(panels, threads)) add(0, p.m, part.first * panel_columns, part.count * panel_columns);
    return;
  }
  Blocks blocks{p.m, p.n, p.rows * at_once, 512};
  blocks.cut_for(threads, p.rows, panel_columns);
  for (std::int64_t n = 0; n < p.n; n += blocks.width) {
    for (std::int64_t m = 0; m < p.m; m += blocks.height) add(m, blocks.height, n, blocks.width);
  }
}

void clear(std::int64_t m, std::int64_t n, float* c, std::int64_t ldc, bool accumulate) {
  for (std::int64_t i = 0; i < m && !accumulate; ++i) std::fill_n(c + i * ldc, n, 0.0F);
}

}  // namespace

void FastDevice::pack_panels(const Panels& with, const Packing& items, float* to) {
  const std::int64_t steps = with.steps(items.depth), panels = (items.count + items.width - 1) / items.width;
  const auto pack = [&](std::int64_t panel, std::int64_t k, std::int64_t depth) {
    const std::int64_t i = panel * items.width;
    Packing part = items;
    part.from += items.items_together ? i + k * items.apart : i * items.apart + k;
    part.count = std::min(items.width, items.count - i), part.depth = depth;
    with.pack(part, to + i * steps + with.steps(k) * items.width);
  };
  if (!items.items_together) {
    return share(panels, items.width * items.depth, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t panel = begin; panel < end; ++panel) pack(panel, 0, items.depth);
    });
  }
  // Some rows of k go to all panels before the next ones are read, each thread's own: a panel alone takes a line or two of each row, which
  // may all fall into one set of a cache, and from a page of its own.
  const std::int64_t rows_at_once = std::max<std::int64_t>(16, with.part);
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

void FastDevice::multiply(const Panels& with, std::span<const PanelProduct> products) {
  std::vector<PanelProduct> parts;
  std::int64_t work = 0;
  for (const PanelProduct& p : products) {
    if (p.steps == 0) clear(p.m, p.n, p.c, p.ldc, p.accumulate);
    if (p.steps == 0) continue;
    work += p.m * p.n * p.steps;
    cut(p, p.m * p.n * p.steps < worth_waking ? 1 : pool_.threads(), parts);
  }
  spread(std::ssize(parts), work, [&](std::int64_t part, int) { with.product(parts[static_cast<std::size_t>(part)]); });
}

void FastDevice::multiply_rows(const Panels& with, const Packing& left, const PanelProduct& p) {
  const auto parts = parts_of((p.m + p.rows - 1) / p.rows, tiles_at_once(p.rows, p.steps), pool_.threads());
  spread(std::ssize(parts), p.m * p.n * p.steps, [&](std::int64_t item, int worker) {
    const auto [first, tiles] = parts[static_cast<std::size_t>(item)];
    const std::int64_t m = first * p.rows;
    PanelProduct part = p;
    part.m = std::min(tiles * p.rows, p.m - m), part.c += m * p.ldc;
    float* packed = score_scratch_[static_cast<std::size_t>(worker)].need(part.m * p.steps);
    for (std::int64_t i = 0; i < part.m; i += p.rows) {
      const std::int64_t rows = std::min(p.rows, part.m - i);
      with.pack({left.from + (m + i) * left.apart, left.apart, rows, left.depth, rows, false}, packed + i * p.steps);
    }
    part.a = packed;
    with.product(part);
  });
}

void FastDevice::multiply_columns(const Panels& with, const Packing& right, const PanelProduct& p) {
  const std::int64_t most = std::clamp<std::int64_t>(words_at_once / (p.steps * with.columns), 1, 512 / with.columns);
  const std::int64_t height = p.rows * tiles_at_once(p.rows, p.steps);
  const auto parts = parts_of((p.n + with.columns - 1) / with.columns, most, pool_.threads());
  spread(std::ssize(parts), p.m * p.n * p.steps, [&](std::int64_t item, int worker) {
    const auto [first, panels] = parts[static_cast<std::size_t>(item)];
    const std::int64_t n = first * with.columns;
    PanelProduct part = p;
    part.n = std::min(panels * with.columns, p.n - n);
    float* packed = score_scratch_[static_cast<std::size_t>(worker)].need(panels * with.columns * p.steps);
    for (std::int64_t j = 0; j < part.n; j += with.columns) {
      const std::int64_t columns = std::min(with.columns, part.n - j);
      with.pack({right.from + (n + j) * right.apart, right.apart, columns, right.depth, with.columns, false}, packed + j * p.steps);
    }
    part.b = packed;
    for (std::int64_t m = 0; m < p.m; m += height) {
      part.m = std::min(height, p.m - m), part.a = p.a + m * p.steps, part.c = p.c + m * p.ldc + n;
      with.product(part);
    }
  });
}

const Panels* FastDevice::panels_for(Kind kind, const Product& p, Precision precision) const {
  if (precision == Precision::bf16) return &kernels_.pairs;
  const bool worth = p.m * p.n * p.k >= worth_waking;
  if (kind == Kind::dot) return worth && p.m > most_direct_rows ? &kernels_.dots : nullptr;
  return worth && p.m > 2 * kernels_.singles.rows && p.n > 16 ? &kernels_.singles : nullptr;
}

// Long sums go in parts, each from operands of its own, so that what a core packs stays in its cache; elements go on from what they are.
void FastDevice::product(Kind kind, const Product& p, Precision precision) {
  if (p.m == 0 || p.n == 0) return;
  const Panels* with = panels_for(kind, p, precision);
  if (with == nullptr) return blocks_of_product(kind, p);
  if (p.k == 0) return clear(p.m, p.n, p.c, p.ldc, p.accumulate);
  constexpr std::int64_t words_of_part = 1024;
  const std::int64_t depth = p.a_k == 1 ? words_of_part * with->step : p.k;
  for (std::int64_t k = 0; k < p.k; k += depth) {
    Product part = p;
    part.k = std::min(depth, p.k - k), part.accumulate = k > 0 || p.accumulate;
    part.a += k * p.a_k, part.b += kind == Kind::dot ? k : k * p.ldb;
    packed_product(kind, part, *with);
  }
}

// The operand that has more items is packed by the threads that multiply it, part by part, each in a core's own cache; the other one before
// that, by all. Where its items lie together (the rows of k are far apart then) it is packed before as well.
void FastDevice::packed_product(Kind kind, const Product& p, const Panels& with) {
  const std::int64_t steps = with.steps(p.k), rows = with.tile(p.m);
  const Packing left{p.a, p.a_k == 1 ? p.a_row : p.a_k, p.m, p.k, rows, p.a_k != 1};
  const Packing right{p.b, p.ldb, p.n, p.k, with.columns, kind == Kind::outer};
  PanelProduct whole{p.m, p.n, steps, rows, nullptr, nullptr, p.c, p.ldc, p.accumulate};
  if (!right.items_together && p.n > p.m) {
    whole.a = pack_left(with, left);
    return multiply_columns(with, right, whole);
  }
  if (left.items_together) whole.a = pack_left(with, left);
  // A large B in parts, so that memory for it stays within bounds.
  constexpr std::int64_t most_words = std::int64_t{32} << 20;
  const std::int64_t most = std::max(with.columns, most_words / steps / with.columns * with.columns);
  for (std::int64_t n = 0; n < p.n; n += most) {
    Packing columns = right;
    columns.from += n * (right.items_together ? 1 : right.apart), columns.count = whole.n = std::min(most, p.n - n);
    float* packed = right_.need(steps * with.width(whole.n));
    pack_panels(with, columns, packed);
    whole.b = packed, whole.c = p.c + n;
    left.items_together ? multiply(with, whole) : multiply_rows(with, left, whole);
  }
}

const float* FastDevice::pack_left(const Panels& with, const Packing& items) {
  float* left = left_.need(with.steps(items.depth) * items.count);
  pack_tiles(with, items, left);
  return left;
}

void FastDevice::blocks_of_product(Kind kind, const Product& p) {
  const std::int64_t work = p.m * p.n * p.k;
  if (work < worth_waking) return (kind == Kind::dot ? kernels_.dot_product : kernels_.outer_product)(p, scratch(0));
  if (kind == Kind::dot) return product_of_few_rows(p);
  Blocks blocks{p.m, p.n, 192, 512};
  blocks.cut_for(pool_.threads(), 24, 64);
  spread(blocks.count(), work, [&](std::int64_t block, int worker) {
    const std::int64_t m = block % blocks.down() * blocks.height, n = block / blocks.down() * blocks.width;
    Product part = p;
    part.m = std::min(blocks.height, p.m - m), part.n = std::min(blocks.width, p.n - n);
    part.a += m * p.a_row, part.b += n, part.c += m * p.ldc + n;
    kernels_.outer_product(part, scratch(worker));
  });
}

namespace {

Shape packed_shape(DType type, const Panels& pairs, std::int64_t n, std::int64_t k) {
  check(type == DType::bf16_packed || type == DType::int8_packed, "pack: a weight is packed in bf16 or int8");
  if (type == DType::bf16_packed) return {panels_width(n), pairs.steps(k) * pairs.step};
  return {panels_width(n), int8_panel(pairs.steps(k)) / panel_columns};
}

}  // namespace

void FastDevice::pack(const Tensor& weight, DType type, Tensor& packed) {
  check(weight.shape().rank() == 2, "pack: a weight is a matrix");
  const Shape shape = packed_shape(type, kernels_.pairs, rows_of(weight), width_of(weight));
  if (!packed) packed = empty(shape, type);
  check(packed.dtype() == type && packed.shape() == shape, "pack: a packed weight of another shape or type");
  if (type == DType::int8_packed) return pack_int8(weight, packed);
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
  if (!is_packed(b)) {
    p.b = in(b);
    return product(how.transpose_b ? Kind::dot : Kind::outer, p, how.precision);
  }
  check(b.shape() == packed_shape(b.dtype(), kernels_.pairs, n, k), "gemm: the packed weight has another shape");
  if (m == 0 || n == 0) return;
  const Packing left{p.a, p.a_k == 1 ? p.a_row : p.a_k, m, k, kernels_.pairs.tile(m), p.a_k != 1};
  const PanelProduct whole{
      m,   n, kernels_.pairs.steps(k), left.width, pack_left(kernels_.pairs, left), reinterpret_cast<const float*>(raw(b)),
      p.c, n, how.accumulate};
  b.dtype() == DType::int8_packed ? product_with_int8(whole) : multiply(kernels_.pairs, whole);
}

}  // namespace troupe::engine::ops

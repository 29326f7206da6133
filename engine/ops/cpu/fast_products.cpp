// The fast device's matrix products: which kernel takes one, and how its parts are shared out to
// the threads.
#include <algorithm>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {
const Panels* FastDevice::panels_for(Kind kind, const Product& p, Precision precision) const {
  if (precision == Precision::bf16) return &kernels_.pairs;
  const bool worth = p.m * p.n * p.k >= worth_waking;
  if (kind == Kind::dot) return worth && p.m > most_direct_rows ? &kernels_.dots : nullptr;
  return worth && p.m > 2 * kernels_.singles.rows && p.n > 16 ? &kernels_.singles : nullptr;
}

void FastDevice::product(Kind kind, const Product& p, Precision precision) {
  if (p.m == 0 || p.n == 0) return;
  const Panels* with = panels_for(kind, p, precision);
  if (with == nullptr) return blocks_of_product(kind, p);
  if (p.k == 0) return clear(p.m, p.n, p.c, p.ldc, p.accumulate);
  for (const Product& part : parts_of_sum(p, kind == Kind::dot, *with))
    packed_product(kind, part, *with);
}

// The operand that has more items is packed by the threads that multiply it, part by part, each in
// a core's own cache; the other one before that, by all. Where its items lie together (the rows of
// k are far apart then) it is packed before as well.
void FastDevice::packed_product(Kind kind, const Product& p, const Panels& with) {
  const std::int64_t steps = with.steps(p.k), rows = with.tile(p.m);
  const Packing left{p.a, p.a_k == 1 ? p.a_row : p.a_k, p.m, p.k, rows, p.a_k != 1};
  const Packing right{p.b, p.ldb, p.n, p.k, with.columns, kind == Kind::outer};
  PanelProduct whole{p.m, p.n, steps, rows, nullptr, nullptr, p.c, p.ldc, p.accumulate};
  if (!right.items_together && p.n > p.m) {
    whole.a = pack_left(with, left);
    const Unpacked columns{right, whole};
    return multiply_columns(with, std::span(&columns, 1));
  }
  if (left.items_together) whole.a = pack_left(with, left);
  // A large B in parts, so that memory for it stays within bounds.
  const std::int64_t most =
      std::max(with.columns, most_packed_words / steps / with.columns * with.columns);
  for (std::int64_t n = 0; n < p.n; n += most) {
    Packing columns = right;
    columns.from += n * (right.items_together ? 1 : right.apart),
        columns.count = whole.n = std::min(most, p.n - n);
    float* packed = right_.need(steps * with.width(whole.n));
    pack_panels(with, columns, packed);
    whole.b = packed, whole.c = p.c + n;
    const Unpacked rows_of_it{left, whole};
    left.items_together ? multiply(with, whole) : multiply_rows(with, std::span(&rows_of_it, 1));
  }
}

void FastDevice::blocks_of_product(Kind kind, const Product& p) {
  const std::int64_t work = p.m * p.n * p.k;
  if (work < worth_waking)
    return (kind == Kind::dot ? kernels_.dot_product : kernels_.outer_product)(p, scratch(0));
  if (kind == Kind::dot) return products_of_few_rows(std::span(&p, 1));
  Blocks blocks{p.m, p.n, 192, 512};
  blocks.cut_for(pool_.threads(), 24, 64);
  spread(blocks.count(), work, [&](std::int64_t block, int worker) {
    const std::int64_t m = block % blocks.down() * blocks.height,
                       n = block / blocks.down() * blocks.width;
    Product part = p;
    part.m = std::min(blocks.height, p.m - m), part.n = std::min(blocks.width, p.n - n);
    part.a += m * p.a_row, part.b += n, part.c += m * p.ldc + n;
    kernels_.outer_product(part, scratch(worker));
  });
}

namespace {

Shape packed_shape(DType type, const Panels& pairs, std::int64_t n, std::int64_t k) {
  check(type == DType::bf16_packed || type == DType::int8_packed,
        "pack: a weight is packed in bf16 or int8");
  if (type == DType::bf16_packed) return {panels_width(n), pairs.steps(k) * pairs.step};
  return {panels_width(n), int8_panel(pairs.steps(k)) / panel_columns};
}

}  // namespace

void FastDevice::pack(const Tensor& weight, DType type, Tensor& packed) {
  check(weight.shape().rank() == 2, "pack: a weight is a matrix");
  const Shape shape = packed_shape(type, kernels_.pairs, rows_of(weight), width_of(weight));
  if (!packed) packed = empty(shape, type);
  check(packed.dtype() == type && packed.shape() == shape,
        "pack: a packed weight of another shape or type");
  if (type == DType::int8_packed) return pack_int8(weight, packed);
  pack_panels(
      kernels_.pairs,
      {in(weight), width_of(weight), rows_of(weight), width_of(weight), panel_columns, false},
      reinterpret_cast<float*>(raw(packed)));
}

Product FastDevice::product_of(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) {
  const auto [m, n, k] = gemm_sizes(a, b, c, how);
  return {.m = m,
          .n = n,
          .k = k,
          .a = in(a),
          .a_row = how.transpose_a ? 1 : k,
          .a_k = how.transpose_a ? m : 1,
          .b = is_packed(b) ? nullptr : in(b),
          .ldb = how.transpose_b ? k : n,
          .c = out(c),
          .ldc = n,
          .accumulate = how.accumulate};
}

void FastDevice::gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) {
  if (!is_packed(b))
    return product(how.transpose_b ? Kind::dot : Kind::outer, product_of(a, b, c, how),
                   how.precision);
  GemmCall call{a, b, c, how};
  products_with_packed(std::span(&call, 1));
}

void FastDevice::products_with_packed(std::span<GemmCall> calls) {
  const Panels& pairs = kernels_.pairs;
  std::vector<PanelProduct> wholes;
  for (GemmCall& call : calls) {
    const Product p = product_of(call.a, call.b, call.c, call.how);
    check(call.b.shape() == packed_shape(call.b.dtype(), pairs, p.n, p.k),
          "gemm: the packed weight has another shape");
    if (p.m == 0 || p.n == 0) continue;
    const Packing left{p.a, p.a_k == 1 ? p.a_row : p.a_k, p.m, p.k, pairs.tile(p.m), p.a_k != 1};
    const float* packed = wholes.empty() ? pack_left(pairs, left) : wholes[0].a;
    wholes.push_back({p.m, p.n, pairs.steps(p.k), left.width, packed,
                      reinterpret_cast<const float*>(raw(call.b)), p.c, p.n, p.accumulate});
  }
  if (calls[0].b.dtype() == DType::bf16_packed) return multiply(pairs, wholes);
  for (const PanelProduct& whole : wholes) product_with_int8(whole);
}

}  // namespace troupe::engine::ops

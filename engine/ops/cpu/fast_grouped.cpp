// Products of the fast device that share an operand, or add to one C: what they share is packed,
// read and written once for all of them.
#include <algorithm>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {
namespace {

bool same(const Tensor& x, const Tensor& y) {
  return x.buffer() == y.buffer() && x.offset_bytes() == y.offset_bytes() && x.shape() == y.shape();
}

/// Whether all have one kind of operands, one precision and one `shared` operand.
bool alike(std::span<const GemmCall> calls, Tensor GemmCall::*shared) {
  const auto& [a, b, c, how] = calls[0];
  return std::all_of(calls.begin() + 1, calls.end(), [&](const GemmCall& call) {
    return call.how.transpose_a == how.transpose_a && call.how.transpose_b == how.transpose_b &&
           call.how.precision == how.precision && call.b.dtype() == b.dtype() &&
           same(call.*shared, calls[0].*shared);
  });
}

/// What all of them share, where that is something they can share; nullptr: nothing.
Tensor GemmCall::*shared_by(std::span<const GemmCall> calls) {
  const Gemm& how = calls[0].how;
  if (how.transpose_a && how.transpose_b) return nullptr;
  Tensor GemmCall::*const shared = how.transpose_b   ? &GemmCall::a
                                   : how.transpose_a ? &GemmCall::b
                                                     : &GemmCall::c;
  const bool adds = std::all_of(calls.begin() + 1, calls.end(),
                                [](const GemmCall& call) { return call.how.accumulate; });
  return alike(calls, shared) && (adds || shared != &GemmCall::c) ? shared : nullptr;
}

std::int64_t multiplications(std::span<const Product> products) {
  std::int64_t sum = 0;
  for (const Product& p : products) sum += p.m * p.n * p.k;
  return sum;
}

bool any_is_empty(std::span<const Product> products) {
  return std::any_of(products.begin(), products.end(),
                     [](const Product& p) { return p.m == 0 || p.n == 0 || p.k == 0; });
}

}  // namespace

void FastDevice::grouped_gemm(std::span<GemmCall> calls) {
  Tensor GemmCall::*const shared = calls.size() > 1 ? shared_by(calls) : nullptr;
  if (shared == nullptr) return Device::grouped_gemm(calls);
  if (is_packed(calls[0].b)) return products_with_packed(calls);
  grouped_.clear();
  for (GemmCall& call : calls) grouped_.push_back(product_of(call.a, call.b, call.c, call.how));
  const Precision precision = calls[0].how.precision;
  const bool done = shared == &GemmCall::a   ? products_of_one_left(grouped_, precision)
                    : shared == &GemmCall::b ? products_of_one_right(grouped_, precision)
                                             : products_of_one_sum(grouped_, precision);
  if (done) return;
  for (const Product& p : grouped_)
    product(shared == &GemmCall::a ? Kind::dot : Kind::outer, p, precision);
}

const Panels* FastDevice::panels_for_all(Kind kind, std::span<const Product> products,
                                         Precision precision) const {
  const Panels* with = panels_for(kind, products[0], precision);
  const bool all = std::all_of(products.begin(), products.end(), [&](const Product& p) {
    return panels_for(kind, p, precision) == with;
  });
  return all && !any_is_empty(products) ? with : nullptr;
}

bool FastDevice::products_of_one_left(std::span<const Product> products, Precision precision) {
  if (precision == Precision::f32 && products[0].m <= most_direct_rows) {
    if (any_is_empty(products) || multiplications(products) < worth_waking) return false;
    return products_of_few_rows(products), true;
  }
  const Panels* with = panels_for_all(Kind::dot, products, precision);
  if (with == nullptr || parts_of_sum(products[0], true, *with).size() > 1) return false;
  const std::int64_t steps = with->steps(products[0].k);
  std::int64_t n = 0;
  for (const Product& p : products) n += with->width(p.n);
  if (n * steps > most_packed_words) return false;
  multiply_one_left(*with, products, n > products[0].m);
  return true;
}

void FastDevice::multiply_one_left(const Panels& with, std::span<const Product> products,
                                   bool by_columns) {
  const Product& first = products[0];
  const std::int64_t steps = with.steps(first.k), rows = with.tile(first.m);
  const Packing left{first.a, first.a_row, first.m, first.k, rows, false};
  std::int64_t words = 0;
  for (const Product& p : products) words += with.width(p.n) * steps;
  const float* packed_left = by_columns ? pack_left(with, left) : nullptr;
  float* packed = by_columns ? nullptr : right_.need(words);
  std::vector<Unpacked> parts;
  for (const Product& p : products) {
    const Packing right{p.b, p.ldb, p.n, p.k, with.columns, false};
    parts.push_back({by_columns ? right : left,
                     {p.m, p.n, steps, rows, packed_left, packed, p.c, p.ldc, p.accumulate}});
    if (by_columns) continue;
    pack_panels(with, right, packed);
    packed += with.width(p.n) * steps;
  }
  by_columns ? multiply_columns(with, parts) : multiply_rows(with, parts);
}

bool FastDevice::products_of_one_right(std::span<const Product> products, Precision precision) {
  const Panels* with = panels_for_all(Kind::outer, products, precision);
  if (with == nullptr) return false;
  const Product& first = products[0];
  const std::int64_t steps = with->steps(first.k);
  std::int64_t m = 0;
  for (const Product& p : products) m += p.m;
  if (std::max(m, with->width(first.n)) * steps > most_packed_words) return false;

  float *right = right_.need(steps * with->width(first.n)), *left = left_.need(steps * m);
  pack_panels(*with, {first.b, first.ldb, first.n, first.k, with->columns, true}, right);
  std::vector<PanelProduct> wholes;
  for (const Product& p : products) {
    const Packing items{p.a, p.a_k, p.m, p.k, with->tile(p.m), true};
    pack_tiles(*with, items, left);
    wholes.push_back({p.m, p.n, steps, items.width, left, right, p.c, p.ldc, p.accumulate});
    left += steps * p.m;
  }
  multiply(*with, wholes);
  return true;
}

bool FastDevice::products_of_one_sum(std::span<const Product> products, Precision precision) {
  const Panels* with = panels_for_all(Kind::outer, products, precision);
  if (with == nullptr) return false;
  std::vector<Product> parts;
  std::int64_t words = 0;
  for (const Product& p : products) {
    for (const Product& part : parts_of_sum(p, false, *with)) {
      words += with->steps(part.k) * with->width(part.n);
      parts.push_back(part);
    }
  }
  if (words > most_packed_words) return false;

  float* packed = right_.need(words);
  std::vector<Unpacked> unpacked;
  for (const Product& p : parts) {
    const std::int64_t rows = with->tile(p.m), steps = with->steps(p.k);
    pack_panels(*with, {p.b, p.ldb, p.n, p.k, with->columns, true}, packed);
    unpacked.push_back({{p.a, p.a_row, p.m, p.k, rows, false},
                        {p.m, p.n, steps, rows, nullptr, packed, p.c, p.ldc, p.accumulate}});
    packed += steps * with->width(p.n);
  }
  multiply_rows(*with, unpacked);
  return true;
}

}  // namespace troupe::engine::ops

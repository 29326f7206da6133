#include "engine/ops/cpu/gemm/grouped_gemm.h"

#include <algorithm>

#include "engine/ops/cpu/context/options.h"
#include "engine/ops/cpu/gemm/blocking.h"
#include "engine/ops/cpu/gemm/few_rows.h"
#include "engine/ops/cpu/gemm/gemm.h"
#include "engine/ops/cpu/gemm/packed_gemm.h"
#include "engine/ops/cpu/gemm/packing.h"

namespace troupe::engine::ops::cpu {
namespace {

bool same(const Tensor& x, const Tensor& y) {
  return x.buffer() == y.buffer() && x.offset_bytes() == y.offset_bytes() && x.shape() == y.shape();
}

/// Returns whether all calls have the same transposition, precision and `shared` operand.
bool alike(std::span<const GemmCall> calls, Tensor GemmCall::*shared) {
  const auto& [a, b, c, how] = calls[0];
  return std::all_of(calls.begin() + 1, calls.end(), [&](const GemmCall& call) {
    return call.how.transpose_a == how.transpose_a && call.how.transpose_b == how.transpose_b &&
           call.how.precision == how.precision && call.b.dtype() == b.dtype() &&
           same(call.*shared, calls[0].*shared);
  });
}

/// Returns the operand that all calls share and that can be packed once, or nullptr.
Tensor GemmCall::*shared_operand(std::span<const GemmCall> calls) {
  const Gemm& how = calls[0].how;
  if (how.transpose_a && how.transpose_b) return nullptr;
  Tensor GemmCall::*const shared = how.transpose_b   ? &GemmCall::a
                                   : how.transpose_a ? &GemmCall::b
                                                     : &GemmCall::c;
  const bool adds = std::all_of(calls.begin() + 1, calls.end(),
                                [](const GemmCall& call) { return call.how.accumulate; });
  return alike(calls, shared) && (adds || shared != &GemmCall::c) ? shared : nullptr;
}

std::int64_t multiplications(std::span<const GemmArgs> products) {
  std::int64_t sum = 0;
  for (const GemmArgs& p : products) sum += p.m * p.n * p.k;
  return sum;
}

bool any_is_empty(std::span<const GemmArgs> products) {
  return std::any_of(products.begin(), products.end(),
                     [](const GemmArgs& p) { return p.m == 0 || p.n == 0 || p.k == 0; });
}

const GemmKernel* kernel_for_all(const Context& context, GemmKind kind,
                                 std::span<const GemmArgs> products, Precision precision) {
  const GemmKernel* kernel = packing_kernel_for(context, kind, products[0], precision);
  const bool all = std::all_of(products.begin(), products.end(), [&](const GemmArgs& p) {
    return packing_kernel_for(context, kind, p, precision) == kernel;
  });
  return all && !any_is_empty(products) ? kernel : nullptr;
}

/// by_columns: A is packed beforehand, otherwise the Bs are.
void run_gemms_of_one_a(const Context& context, const GemmKernel& kernel,
                        std::span<const GemmArgs> products, bool by_columns) {
  const GemmArgs& first = products[0];
  const std::int64_t steps = kernel.k_groups(first.k), rows = kernel.mr_for(first.m);
  const PackArgs left{first.a, first.rs_a, first.m, first.k, rows, false};
  std::int64_t elements = 0;
  for (const GemmArgs& p : products) elements += kernel.padded_n(p.n) * steps;
  const float* packed_left = by_columns ? pack_a(context, kernel, left) : nullptr;
  float* packed = by_columns ? nullptr : context.workspace.packed_b.need(elements);
  std::vector<UnpackedGemm> parts;
  for (const GemmArgs& p : products) {
    const PackArgs right{p.b, p.ldb, p.n, p.k, kernel.nr, false};
    parts.push_back({by_columns ? right : left,
                     {p.m, p.n, steps, rows, packed_left, packed, p.c, p.ldc, p.accumulate}});
    if (by_columns) continue;
    pack_panels(context, kernel, right, packed);
    packed += kernel.padded_n(p.n) * steps;
  }
  by_columns ? gemm_packing_b(context, kernel, parts) : gemm_packing_a(context, kernel, parts);
}

bool gemms_of_one_a(const Context& context, std::span<const GemmArgs> products,
                    Precision precision) {
  if (precision == Precision::f32 && products[0].m <= max_few_rows) {
    if (any_is_empty(products) || multiplications(products) < parallel_threshold) return false;
    gemm_few_rows(context, products);
    return true;
  }
  const GemmKernel* kernel = kernel_for_all(context, GemmKind::nt, products, precision);
  if (kernel == nullptr || split_k(products[0], true, *kernel).size() > 1) return false;
  const std::int64_t steps = kernel->k_groups(products[0].k);
  std::int64_t n = 0;
  for (const GemmArgs& p : products) n += kernel->padded_n(p.n);
  if (n * steps > max_packed_elements) return false;
  run_gemms_of_one_a(context, *kernel, products, n > products[0].m);
  return true;
}

bool gemms_of_one_b(const Context& context, std::span<const GemmArgs> products,
                    Precision precision) {
  const GemmKernel* kernel = kernel_for_all(context, GemmKind::nn, products, precision);
  if (kernel == nullptr) return false;
  const GemmArgs& first = products[0];
  const std::int64_t steps = kernel->k_groups(first.k);
  std::int64_t m = 0;
  for (const GemmArgs& p : products) m += p.m;
  if (std::max(m, kernel->padded_n(first.n)) * steps > max_packed_elements) return false;

  float* right = context.workspace.packed_b.need(steps * kernel->padded_n(first.n));
  float* left = context.workspace.packed_a.need(steps * m);
  pack_panels(context, *kernel, {first.b, first.ldb, first.n, first.k, kernel->nr, true}, right);
  std::vector<PackedGemm> packed;
  for (const GemmArgs& p : products) {
    const PackArgs items{p.a, p.cs_a, p.m, p.k, kernel->mr_for(p.m), true};
    pack_tiles(context, *kernel, items, left);
    packed.push_back({p.m, p.n, steps, items.width, left, right, p.c, p.ldc, p.accumulate});
    left += steps * p.m;
  }
  packed_gemm(context, *kernel, packed);
  return true;
}

bool gemms_of_one_c(const Context& context, std::span<const GemmArgs> products,
                    Precision precision) {
  const GemmKernel* kernel = kernel_for_all(context, GemmKind::nn, products, precision);
  if (kernel == nullptr) return false;
  std::vector<GemmArgs> parts;
  std::int64_t elements = 0;
  for (const GemmArgs& p : products) {
    for (const GemmArgs& part : split_k(p, false, *kernel)) {
      elements += kernel->k_groups(part.k) * kernel->padded_n(part.n);
      parts.push_back(part);
    }
  }
  if (elements > max_packed_elements) return false;

  float* packed = context.workspace.packed_b.need(elements);
  std::vector<UnpackedGemm> unpacked;
  for (const GemmArgs& p : parts) {
    const std::int64_t rows = kernel->mr_for(p.m), steps = kernel->k_groups(p.k);
    pack_panels(context, *kernel, {p.b, p.ldb, p.n, p.k, kernel->nr, true}, packed);
    unpacked.push_back({{p.a, p.rs_a, p.m, p.k, rows, false},
                        {p.m, p.n, steps, rows, nullptr, packed, p.c, p.ldc, p.accumulate}});
    packed += steps * kernel->padded_n(p.n);
  }
  gemm_packing_a(context, *kernel, unpacked);
  return true;
}

}  // namespace

bool grouped_gemm(const Context& context, std::span<GemmCall> calls) {
  Tensor GemmCall::*const shared = calls.size() > 1 ? shared_operand(calls) : nullptr;
  if (shared == nullptr) return false;
  if (is_packed(calls[0].b)) {
    gemm_with_packed_b(context, calls);
    return true;
  }
  std::vector<GemmArgs>& products = context.workspace.grouped_gemms;
  products.clear();
  for (GemmCall& call : calls) products.push_back(gemm_args(call.a, call.b, call.c, call.how));
  const Precision precision = calls[0].how.precision;
  const bool done = shared == &GemmCall::a   ? gemms_of_one_a(context, products, precision)
                    : shared == &GemmCall::b ? gemms_of_one_b(context, products, precision)
                                             : gemms_of_one_c(context, products, precision);
  if (done) return true;
  for (const GemmArgs& p : products)
    gemm(context, shared == &GemmCall::a ? GemmKind::nt : GemmKind::nn, p, precision);
  return true;
}

}  // namespace troupe::engine::ops::cpu

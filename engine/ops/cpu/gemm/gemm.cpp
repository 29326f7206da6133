#include "engine/ops/cpu/gemm/gemm.h"

#include <algorithm>

#include "engine/ops/cpu/context/context.h"
#include "engine/ops/cpu/context/options.h"
#include "engine/ops/cpu/gemm/blocking.h"
#include "engine/ops/cpu/gemm/few_rows.h"
#include "engine/ops/cpu/gemm/packed_gemm.h"
#include "engine/ops/cpu/gemm/packing.h"
#include "engine/ops/shapes.h"

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

/// Quantizes and packs a weight [N, K] into `packed`.
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

/// C = A B with B in int8 panels. Few rows read the integers in place; more rows read a bf16 copy
/// that stays in a core's own cache.
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

PackArgs rows_of_a(const GemmArgs& p, std::int64_t mr) {
  return {p.a, p.cs_a == 1 ? p.rs_a : p.cs_a, p.m, p.k, mr, p.cs_a != 1};
}

// The operand with more rows or columns is packed by the threads that multiply it, range by range,
// each in its core's own cache; the other operand is packed before that, by all threads. An operand
// whose items are contiguous (rows of k have a large stride) is packed before as well.
void gemm_packing_operands(const Context& context, GemmKind kind, const GemmArgs& p,
                           const GemmKernel& kernel) {
  const std::int64_t k_groups = kernel.k_groups(p.k), mr = kernel.mr_for(p.m);
  const PackArgs a = rows_of_a(p, mr);
  const PackArgs b{p.b, p.ldb, p.n, p.k, kernel.nr, kind == GemmKind::nn};
  PackedGemm whole{.m = p.m,
                   .n = p.n,
                   .k_groups = k_groups,
                   .mr = mr,
                   .a = nullptr,
                   .b = nullptr,
                   .c = p.c,
                   .ldc = p.ldc,
                   .accumulate = p.accumulate};
  if (!b.items_contiguous && p.n > p.m) {
    whole.a = pack_a(context, kernel, a);
    const UnpackedGemm unpacked{b, whole};
    return gemm_packing_b(context, kernel, std::span(&unpacked, 1));
  }
  if (a.items_contiguous) whole.a = pack_a(context, kernel, a);
  // A large B is packed in parts, so that its memory stays bounded.
  const std::int64_t max_columns =
      std::max(kernel.nr, max_packed_elements / k_groups / kernel.nr * kernel.nr);
  for (std::int64_t n = 0; n < p.n; n += max_columns) {
    PackArgs columns = b;
    columns.from += n * (b.items_contiguous ? 1 : b.ld);
    columns.count = std::min(max_columns, p.n - n);
    float* packed = context.workspace.packed_b.need(k_groups * kernel.padded_n(columns.count));
    pack_panels(context, kernel, columns, packed);
    whole.n = columns.count;
    whole.b = packed;
    whole.c = p.c + n;
    const UnpackedGemm unpacked{a, whole};
    if (a.items_contiguous) {
      packed_gemm(context, kernel, std::span(&whole, 1));
    } else {
      gemm_packing_a(context, kernel, std::span(&unpacked, 1));
    }
  }
}

// f32 products by a kernel that packs for itself, in blocks of C.
void gemm_without_packing(const Context& context, GemmKind kind, const GemmArgs& p) {
  const std::int64_t work = p.m * p.n * p.k;
  if (work < parallel_threshold) {
    const auto kernel = kind == GemmKind::nt ? context.kernels.gemm_nt : context.kernels.gemm_nn;
    return kernel(p, context.gemm_memory(0));
  }
  if (kind == GemmKind::nt) return gemm_few_rows(context, std::span(&p, 1));
  BlockGrid blocks{p.m, p.n, 192, 512};
  blocks.split_for(context.pool.threads(), 24, 64);
  context.parallel_for(blocks.count(), work, [&](std::int64_t block, int worker) {
    const std::int64_t m = block % blocks.down() * blocks.height,
                       n = block / blocks.down() * blocks.width;
    GemmArgs part = p;
    part.m = std::min(blocks.height, p.m - m);
    part.n = std::min(blocks.width, p.n - n);
    part.a += m * p.rs_a;
    part.b += n;
    part.c += m * p.ldc + n;
    context.kernels.gemm_nn(part, context.gemm_memory(worker));
  });
}

}  // namespace

const GemmKernel* packing_kernel_for(const Context& context, GemmKind kind, const GemmArgs& p,
                                     Precision precision) {
  const Kernels& kernels = context.kernels;
  if (precision == Precision::bf16) return &kernels.gemm_bf16;
  const bool large = p.m * p.n * p.k >= parallel_threshold;
  if (kind == GemmKind::nt) return large && p.m > max_few_rows ? &kernels.gemm_f32_dot : nullptr;
  return large && p.m > 2 * kernels.gemm_f32.mr && p.n > 16 ? &kernels.gemm_f32 : nullptr;
}

void gemm(const Context& context, GemmKind kind, const GemmArgs& p, Precision precision) {
  if (p.m == 0 || p.n == 0) return;
  const GemmKernel* kernel = packing_kernel_for(context, kind, p, precision);
  if (kernel == nullptr) return gemm_without_packing(context, kind, p);
  if (p.k == 0) return clear_c(p.m, p.n, p.c, p.ldc, p.accumulate);
  for (const GemmArgs& part : split_k(p, kind == GemmKind::nt, *kernel))
    gemm_packing_operands(context, kind, part, *kernel);
}

Shape packed_weight_shape(const Context& context, DType type, std::int64_t n, std::int64_t k) {
  check(type == DType::bf16_packed || type == DType::int8_packed,
        "pack: a weight is packed as bf16 or int8");
  const GemmKernel& bf16 = context.kernels.gemm_bf16;
  if (type == DType::bf16_packed) return {padded_columns(n), bf16.k_groups(k) * bf16.k_pack};
  return {padded_columns(n), int8_panel(bf16.k_groups(k)) / panel_nr};
}

void pack_weight(const Context& context, const Tensor& weight, Tensor& packed) {
  if (packed.dtype() == DType::int8_packed) return pack_int8_weight(context, weight, packed);
  pack_panels(context, context.kernels.gemm_bf16,
              {data(weight), width_of(weight), rows_of(weight), width_of(weight), panel_nr, false},
              reinterpret_cast<float*>(raw(packed)));
}

GemmArgs gemm_args(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) {
  const auto [m, n, k] = gemm_sizes(a, b, c, how);
  return {.m = m,
          .n = n,
          .k = k,
          .a = data(a),
          .rs_a = how.transpose_a ? 1 : k,
          .cs_a = how.transpose_a ? m : 1,
          .b = is_packed(b) ? nullptr : data(b),
          .ldb = how.transpose_b ? k : n,
          .c = mutable_data(c),
          .ldc = n,
          .accumulate = how.accumulate};
}

void gemm_with_packed_b(const Context& context, std::span<GemmCall> calls) {
  const GemmKernel& bf16 = context.kernels.gemm_bf16;
  std::vector<PackedGemm> products;
  for (GemmCall& call : calls) {
    const GemmArgs p = gemm_args(call.a, call.b, call.c, call.how);
    check(call.b.shape() == packed_weight_shape(context, call.b.dtype(), p.n, p.k),
          "gemm: the packed weight has another shape");
    if (p.m == 0 || p.n == 0) continue;
    const PackArgs a = rows_of_a(p, bf16.mr_for(p.m));
    const float* packed_a = products.empty() ? pack_a(context, bf16, a) : products[0].a;
    products.push_back({p.m, p.n, bf16.k_groups(p.k), a.width, packed_a,
                        reinterpret_cast<const float*>(raw(call.b)), p.c, p.n, p.accumulate});
  }
  if (calls[0].b.dtype() == DType::bf16_packed) return packed_gemm(context, bf16, products);
  for (const PackedGemm& product : products) gemm_int8(context, product);
}

}  // namespace troupe::engine::ops::cpu

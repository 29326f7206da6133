// Products of packed operands, divided among threads.
#pragma once

#include <span>

#include "engine/ops/cpu/context/context.h"

namespace troupe::engine::ops::cpu {

/// A product one operand of which is packed during the product. Its items are not contiguous.
struct UnpackedGemm {
  PackArgs items;
  PackedGemm gemm;
};

/// Independent products, divided among threads together.
void packed_gemm(const Context& context, const GemmKernel& kernel,
                 std::span<const PackedGemm> products);
/// Products one after the other, so that they may add to one C, of the same m. Threads pack the
/// rows of A that they multiply, once for neighbouring products with the same A.
void gemm_packing_a(const Context& context, const GemmKernel& kernel,
                    std::span<const UnpackedGemm> products);
/// Products of packed As of the same m and k. Threads pack the columns of B that they multiply.
void gemm_packing_b(const Context& context, const GemmKernel& kernel,
                    std::span<const UnpackedGemm> products);

}  // namespace troupe::engine::ops::cpu

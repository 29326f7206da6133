// Matrix products of the CPU device: which kernel computes a product, and how threads divide it.
#pragma once

#include <span>

#include "engine/ops/cpu/context/context.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu {

/// Layout of B: [n, k] (nt, C = A B^T) or [k, n] (nn, C = A B).
enum class GemmKind { nt, nn };

/// Returns the operands of a product, after checking them. `b` may be a packed weight.
GemmArgs gemm_args(const Tensor& a, const Tensor& b, Tensor& c, Gemm how);

/// Returns the kernel that packs its operands, or nullptr if the product is too small or has too
/// few rows for packing.
const GemmKernel* packing_kernel_for(const Context& context, GemmKind kind, const GemmArgs& p,
                                     Precision precision);

/// C = A B or A B^T on all threads. Operands of bf16 products and of large ones are packed first.
void gemm(const Context& context, GemmKind kind, const GemmArgs& p, Precision precision);

/// Products of packed weights with one A.
void gemm_with_packed_b(const Context& context, std::span<GemmCall> calls);

/// Shape of a weight [n, k] packed as `type`.
Shape packed_weight_shape(const Context& context, DType type, std::int64_t n, std::int64_t k);
/// Packs a weight [N, K] into `packed`, whose shape and type are set.
void pack_weight(const Context& context, const Tensor& weight, Tensor& packed);

}  // namespace troupe::engine::ops::cpu

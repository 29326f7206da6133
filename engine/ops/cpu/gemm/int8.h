// Products with int8 weights (micro_int8.h).
#pragma once

#include "engine/ops/cpu/context.h"

namespace troupe::engine::ops::cpu {

/// Quantizes and packs a weight [N, K] into `packed`.
void pack_int8_weight(const Context& context, const Tensor& weight, Tensor& packed);
/// C = A B with B in int8 panels. Few rows read the integers in place; more rows read a bf16 copy
/// that stays in a core's own cache.
void gemm_int8(const Context& context, const PackedGemm& p);

}  // namespace troupe::engine::ops::cpu

// f32 products of the few rows that generation has. Weights are read in place, by ranges of
// columns.
#pragma once

#include <span>

#include "engine/ops/cpu/context/context.h"

namespace troupe::engine::ops::cpu {

/// C = A B^T of at most max_few_rows rows, with the same A for all products. Each thread packs A
/// once for all of its columns.
void gemm_few_rows(const Context& context, std::span<const GemmArgs> products);

}  // namespace troupe::engine::ops::cpu

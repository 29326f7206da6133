// Products that share an operand, or add to one C. What they share is packed, read and written
// once.
#pragma once

#include <span>

#include "engine/ops/cpu/context/context.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu {

/// Device::grouped_gemm() of products that share an operand. Returns false, and does nothing, if
/// they share none.
bool grouped_gemm(const Context& context, std::span<GemmCall> calls);

}  // namespace troupe::engine::ops::cpu

// Packing of GEMM operands on all threads.
#pragma once

#include "engine/ops/cpu/context/context.h"

namespace troupe::engine::ops::cpu {

/// Packs columns of B as panels of items.width columns. The last panel is padded with zeros.
void pack_panels(const Context& context, const GemmKernel& kernel, const PackArgs& items,
                 float* to);
/// Packs rows of A as tiles of items.width rows. The last tile is as narrow as what is left.
void pack_tiles(const Context& context, const GemmKernel& kernel, const PackArgs& items, float* to);
/// Packs rows of A as tiles in the workspace.
const float* pack_a(const Context& context, const GemmKernel& kernel, const PackArgs& items);

}  // namespace troupe::engine::ops::cpu

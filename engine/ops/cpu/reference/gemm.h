// Matrix products of the reference device.
#pragma once

#include "engine/ops/types.h"

namespace troupe::engine::ops::cpu::reference {

/// Shape of a weight [n, k] packed as `type`: a plain matrix; an int8 row ends with its scale.
Shape packed_shape(DType type, std::int64_t n, std::int64_t k);
void pack_weight(const Tensor& weight, Tensor& packed);
void gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how);

}  // namespace troupe::engine::ops::cpu::reference

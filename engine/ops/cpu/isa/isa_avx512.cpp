// Compiled with AVX-512 (F, BW, VL, DQ); called only if the processor has all of them.
#include "engine/ops/cpu/isa/table.h"
#include "engine/ops/cpu/simd/vec_avx512.h"

namespace troupe::engine::ops::cpu {

const Kernels& avx512_kernels() {
  static constexpr Kernels table = kernels::table<avx512::Vec>("avx512");
  return table;
}

}  // namespace troupe::engine::ops::cpu

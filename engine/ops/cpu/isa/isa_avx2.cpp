// Compiled with AVX2 and FMA; called only if the processor has both.
#include "engine/ops/cpu/isa/table.h"
#include "engine/ops/cpu/simd/vec_avx2.h"

namespace troupe::engine::ops::cpu {

const Kernels& avx2_kernels() {
  static constexpr Kernels table = kernels::table<avx2::Vec>("avx2");
  return table;
}

}  // namespace troupe::engine::ops::cpu

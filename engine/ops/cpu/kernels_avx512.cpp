// Compiled with AVX-512 (F, BW, VL, DQ); called only where the processor has all of them.
#include "engine/ops/cpu/kernels_table.h"
#include "engine/ops/cpu/lanes_avx512.h"

namespace troupe::engine::ops {

const Kernels& avx512_kernels() {
  static constexpr Kernels table = kernels::table<avx512::Lanes>("avx512");
  return table;
}

}  // namespace troupe::engine::ops

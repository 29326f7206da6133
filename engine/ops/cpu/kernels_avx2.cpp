// Compiled with AVX2 and FMA; called only where the processor has both.
#include "engine/ops/cpu/kernels_table.h"
#include "engine/ops/cpu/lanes_avx2.h"

namespace troupe::engine::ops {

const Kernels& avx2_kernels() {
  static constexpr Kernels table = kernels::table<avx2::Lanes>("avx2");
  return table;
}

}  // namespace troupe::engine::ops

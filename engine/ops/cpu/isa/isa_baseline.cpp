// Compiled for any processor.
#include "engine/ops/cpu/isa/table.h"
#include "engine/ops/cpu/simd/vec_baseline.h"

namespace troupe::engine::ops::cpu {

const Kernels& baseline_kernels() {
  static constexpr Kernels table = kernels::table<baseline::Vec>("baseline");
  return table;
}

}  // namespace troupe::engine::ops::cpu

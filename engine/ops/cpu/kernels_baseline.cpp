// Compiled for any processor.
#include "engine/ops/cpu/kernels_table.h"
#include "engine/ops/cpu/lanes_baseline.h"

namespace troupe::engine::ops {

const Kernels& baseline_kernels() {
  static constexpr Kernels table = kernels::table<baseline::Lanes>("baseline");
  return table;
}

}  // namespace troupe::engine::ops

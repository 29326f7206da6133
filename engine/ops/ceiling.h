// Ceiling: peak rates of a device, measured. A profile compares operators with them.
#pragma once

#include "engine/base/spans.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

struct Ceiling {
  double f32_flops = 0;   ///< FLOP/s of a square f32 product
  double bf16_flops = 0;  ///< FLOP/s of a square bf16 product; 0: not measured
  double read_bytes = 0;  ///< bytes/s of a pass over more memory than the caches hold

  /// Returns the shortest possible time for the work, in seconds.
  double seconds(const Work& work) const;
};

/// Measures the rates. Takes about a quarter of a second and 128 MiB.
Ceiling measure_ceiling(Device& device, bool bf16);

}  // namespace troupe::engine::ops

// What a device can do at best: the measure that a profile's operators are held against.
#pragma once

#include "engine/base/spans.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

struct Ceiling {
  double f32_flops = 0;   ///< of a square product, a second
  double bf16_flops = 0;  ///< the same with inputs in bf16; 0: not measured
  double read_bytes = 0;  ///< of a pass over more memory than caches hold, a second

  /// The shortest time in which the work could be done, in seconds.
  double seconds(const Work& work) const;
};

/// Takes a quarter of a second on an ordinary machine, and 128 MiB.
Ceiling measure_ceiling(Device& device, bool bf16);

}  // namespace troupe::engine::ops

// MemoryUse: what the tensors and operations of a device occupy.
#pragma once

#include <cstddef>

namespace troupe::engine::ops {

/// Memory of a device, in bytes.
struct MemoryUse {
  std::size_t now = 0;   ///< in use by tensors and scratch memory
  std::size_t peak = 0;  ///< maximum of `now`
  std::size_t held = 0;  ///< allocated from the system: `now` plus free memory kept for reuse
};

}  // namespace troupe::engine::ops

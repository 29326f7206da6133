// Arrays that several devices read where they lie: received or shared weights.
#pragma once

#include "engine/base/memory/shared_array.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// Whether the device of `x` reads host memory.
bool in_host_memory(const Tensor& x);

/// The values as a vector [values->size()] of a device in host memory, without a copy. It keeps
/// their owner, and must not be written to.
Tensor borrow(const SharedArray<float>& values);

/// Memory for `count` values, on huge pages where the kernel has them: a GEMM reads them faster. It
/// may outlive the device. Failure(full) if the machine has no memory.
struct HostArray {
  std::shared_ptr<const void> owner;
  std::span<float> values;
};
HostArray host_array(std::int64_t count);

/// A copy of `x` (f32) in a host_array().
SharedArray<float> shared_copy(Device& device, const Tensor& x);

}  // namespace troupe::engine::ops

// HostValues: the values of a tensor in host memory, for messages and files.
#pragma once

#include <span>
#include <vector>

#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// The values of `x` (f32 or bf16). On a device in host memory those of an f32 tensor are its own
/// and nothing is copied; otherwise they are a copy, which store() uploads.
class HostValues {
 public:
  /// Waits for work of the device on `x`.
  HostValues(Device& device, Tensor x);

  std::span<float> values() { return values_; }
  void store();

 private:
  Device& device_;
  Tensor tensor_;
  std::vector<float> copy_;
  std::span<float> values_;
};

}  // namespace troupe::engine::ops

// Creation of the device that a program computes on.
#pragma once

#include <memory>

#include "engine/ops/device.h"

namespace troupe::engine::ops {

struct DeviceOptions {
  int threads = 0;  ///< 0: as many as the process may use; at most 1024
  /// Pins each thread to a processor of its own. Requires as many threads as processors that the
  /// process may use; otherwise a warning says why threads are not pinned.
  bool pin_threads = false;
};

/// Creates the fastest device that this build and this machine have. Code that tests or compares
/// one kind of device calls that one's own function (cpu/cpu_options.h).
std::unique_ptr<Device> make_device(const DeviceOptions& options = {});

}  // namespace troupe::engine::ops

#include "engine/ops/devices/make_device.h"

#include "engine/ops/cpu/cpu_options.h"

namespace troupe::engine::ops {

std::unique_ptr<Device> make_device(const DeviceOptions& options) {
  return make_cpu_device({.threads = options.threads, .pin_threads = options.pin_threads});
}

}  // namespace troupe::engine::ops

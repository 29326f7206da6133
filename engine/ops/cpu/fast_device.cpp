// Stands in until the fast device is written: the same results from the reference.
#include "engine/ops/device.h"

namespace troupe::engine::ops {

std::unique_ptr<Device> make_cpu_device(CpuOptions) { return make_reference_device(); }

}  // namespace troupe::engine::ops

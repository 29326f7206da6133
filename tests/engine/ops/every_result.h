// One fixed round through every operation of a device, at sizes that use all its threads and paths.
#pragma once

#include <map>

#include "tests/engine/ops/every_device.h"

namespace troupe::engine::ops {

/// Results by name.
std::map<std::string, Floats> every_result(Device& device);

}  // namespace troupe::engine::ops

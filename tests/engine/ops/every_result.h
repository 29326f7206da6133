// Runs every operation of a device once, at sizes that use all of its threads and code paths.
#pragma once

#include <map>

#include "tests/engine/ops/every_device.h"

namespace troupe::engine::ops {

/// Results by name.
std::map<std::string, Floats> every_result(Device& device);

}  // namespace troupe::engine::ops

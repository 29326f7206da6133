// ProfiledDevice: records every operation and forwards it to another device.
#pragma once

#include <memory>

#include "engine/base/text/spans.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// Forwards every call to `inner` and records a span with its name, its work
/// (engine/ops/roofline.h) and, if enabled, the shapes of its operands. `spans` must outlive the
/// device. For an asynchronous device the duration of a span is that of the call.
std::unique_ptr<Device> make_profiled_device(std::shared_ptr<Device> inner, Spans& spans);

}  // namespace troupe::engine::ops

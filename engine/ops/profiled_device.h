// A device that tells a profiler of every operation, and leaves the doing to another.
#pragma once

#include <memory>

#include "engine/base/spans.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// Every call goes to `inner` with the same arguments, as a span with its name, its work
/// (engine/ops/work.h) and, where wanted, the shapes of its operands. Its results are inner's.
/// `spans` outlives it. An operation of a device that answers before it is done is as long as its
/// call.
std::unique_ptr<Device> make_profiled_device(std::shared_ptr<Device> inner, Spans& spans);

}  // namespace troupe::engine::ops

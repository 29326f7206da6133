// A communicator that tells a profiler of every collective, and leaves the doing to another.
#pragma once

#include <memory>

#include "engine/base/spans.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

/// Also of the groups that are split off. `spans` outlives it. A span lasts from this rank's coming
/// to its leaving: waiting for the others is in it. Its bytes are those that this rank gives or
/// gets from others, the more of both.
std::unique_ptr<Communicator> make_profiled(std::unique_ptr<Communicator> inner, Spans& spans);

}  // namespace troupe::engine::parallel

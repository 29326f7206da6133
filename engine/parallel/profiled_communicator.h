// A communicator that records a span for every collective of the communicator it wraps.
#pragma once

#include <memory>

#include "engine/base/text/spans.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

/// Wraps `inner` and the groups split from it. `spans` outlives the result. A span covers the call,
/// including the wait for other ranks. Its bytes are those that this rank sends or receives,
/// whichever is more. A non-blocking operation has two spans: its start, with the bytes, and its
/// wait, without.
std::unique_ptr<Communicator> make_profiled(std::unique_ptr<Communicator> inner, Spans& spans);

}  // namespace troupe::engine::parallel

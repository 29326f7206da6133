// A wire body as one contiguous byte string, for collectives between the ranks of a group.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/errors/error.h"
#include "transports/wire/part.h"

namespace troupe::transports::wire {

std::string flatten(const WireBody& body);

/// Inverse of flatten(). The parts point into `bytes`, keep it alive, and are aligned for any
/// number. Errc::bad_input when the recorded sizes are inconsistent; `what` starts the message.
Result<WireBody> unflatten(std::string bytes, std::string_view what);

}  // namespace troupe::transports::wire

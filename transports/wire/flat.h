// A wire body as one run of bytes, for where only bytes travel: collectives between the ranks of a
// group.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "transports/wire/part.h"

namespace troupe::transports::wire {

std::string flatten(const WireBody& body);

/// Its inverse: the parts lie in `bytes`, which they keep alive, each aligned for any number.
/// Errc::bad_input when the sizes that are written there do not add up; `what` begins the sentence.
Result<WireBody> unflatten(std::string bytes, std::string_view what);

}  // namespace troupe::transports::wire

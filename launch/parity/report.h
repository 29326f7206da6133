// The result of a comparison as text and JSON.
#pragma once

#include <span>
#include <string>

#include "engine/base/json/json.h"
#include "launch/parity/measure.h"

namespace troupe::launch::parity {

/// "equal bits", "within 1e-05" or "none".
std::string promise_text(Promise promise);

/// A table of the pairs, a line for each broken promise, and the exceptions.
std::string report_text(std::span<const Report> reports);
Json report_json(std::span<const Report> reports);

}  // namespace troupe::launch::parity

// Formats of strings (JSON Schema Validation, sec. 7.3).
#pragma once

#include <string>
#include <string_view>

namespace troupe::engine::constraints {

/// An expression whose texts all have the format; "" for formats that the specification does not
/// know, which are annotations.
std::string format_pattern(std::string_view name);

}  // namespace troupe::engine::constraints

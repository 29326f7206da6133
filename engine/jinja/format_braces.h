// Python's "{:>5}".format(value).
#pragma once

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

/// format(value, spec).
std::string format_value(Runtime& runtime, const Value& value, const std::string& spec);

/// "{} {name}".format(...): places by order, number or name, with attributes, items, conversions
/// and nested specs.
Value format_braces(Runtime& runtime, const Value& format, const Arguments& arguments);

}  // namespace troupe::engine::jinja

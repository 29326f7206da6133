// Python's two ways to format: "%5.2f" % value and "{:>5}".format(value).
#pragma once

#include <string>

#include "engine/jinja/machine.h"

namespace troupe::engine::jinja {

/// A number or text to be written into a field, as both ways know it.
struct FieldStyle {
  std::string fill = " ";
  char align = '\0';  ///< < > ^ or = (behind the sign); none: the kind's own
  char sign = '-';    ///< - + or a space
  bool alternate = false;
  std::size_t width = 0;
  char grouping = '\0';  ///< , or _
  int precision = -1;
  char kind = '\0';  ///< d f s ...; none: the value's own
};

/// `value` (a number) in digits: sign, prefix, digits; padded to the width.
std::string format_integer(Machine& machine, const FieldStyle& style, std::int64_t value);
std::string format_real(Machine& machine, const FieldStyle& style, double value);
std::string format_text(Machine& machine, const FieldStyle& style, const std::string& text);
/// format(value, spec).
std::string format_value(Machine& machine, const Value& value, const std::string& spec);

/// "%s and %d" % values. A text that is markup escapes what it takes in.
Value format_percent(Machine& machine, const Value& format, const Value& values);
/// "{} {name}".format(...): places by order, number or name, with attributes, items, conversions
/// and nested specs.
Value format_braces(Machine& machine, const Value& format, const Arguments& arguments);

}  // namespace troupe::engine::jinja

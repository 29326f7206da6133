// Formatting of numbers and strings in a field, shared by format_percent.h and format_braces.h.
#pragma once

#include <string>

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

/// The style of a field of either kind.
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
std::string format_integer(Runtime& runtime, const FieldStyle& style, std::int64_t value);
std::string format_real(Runtime& runtime, const FieldStyle& style, double value);
std::string format_text(Runtime& runtime, const FieldStyle& style, const std::string& text);

}  // namespace troupe::engine::jinja

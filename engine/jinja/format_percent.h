// Python's "%5.2f" % value.
#pragma once

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

/// "%s and %d" % values. A markup format escapes its values.
Value format_percent(Runtime& runtime, const Value& format, const Value& values);

}  // namespace troupe::engine::jinja

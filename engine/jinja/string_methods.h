// Methods of strings.
#pragma once

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

std::optional<Value> string_method(const Value& text, std::string_view name);

}  // namespace troupe::engine::jinja

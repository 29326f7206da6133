// Methods of strings.
#pragma once

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

std::optional<Value> string_method(const Value& text, std::string_view name);
std::vector<std::string_view> string_method_names();

}  // namespace troupe::engine::jinja

// Methods of dicts and lists.
#pragma once

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

std::optional<Value> dict_method(const Value& dict, std::string_view name);
std::optional<Value> list_method(const Value& list, std::string_view name);

}  // namespace troupe::engine::jinja

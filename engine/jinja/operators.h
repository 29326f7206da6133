// Operators of the template language.
#pragma once

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

Value binary(Runtime& runtime, const std::string& op, const Value& left, const Value& right);
bool compare(Runtime& runtime, const std::string& op, const Value& left, const Value& right);
Value negate(const Value& value);
Value slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
            const Value& step);
/// int(value) of a number; raises beyond 64 bits.
std::int64_t whole_number(const Value& value);

}  // namespace troupe::engine::jinja

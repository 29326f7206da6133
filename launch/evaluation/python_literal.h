// Literals of Python, as `ast.literal_eval` reads them from rendered templates.
#pragma once

#include <optional>
#include <string_view>

#include "engine/base/json/json.h"

namespace troupe::launch::evaluation {

/// The value of a literal: numbers, strings, True, False, None; lists and tuples as arrays; dicts
/// with string keys as objects. nullopt for anything else, and for nesting beyond 32.
std::optional<Json> parse_python_literal(std::string_view text);

}  // namespace troupe::launch::evaluation

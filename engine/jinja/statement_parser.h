// Parses a template into its syntax tree.
#pragma once

#include <string>

#include "engine/jinja/ast.h"

namespace troupe::engine::jinja {

/// Throws Failure (Errc::bad_input) with the line.
Block parse_template(std::string source);

}  // namespace troupe::engine::jinja

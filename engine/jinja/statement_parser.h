// Parses a template into its syntax tree.
#pragma once

#include <string>

#include "engine/jinja/ast.h"
#include "engine/jinja/lexer.h"

namespace troupe::engine::jinja {

/// Throws Failure (Errc::bad_input) with the line.
Block parse_template(std::string source, TemplateRules rules = {});

}  // namespace troupe::engine::jinja

// Constraint texts as finished grammars.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/constraints/grammar.h"

namespace troupe::engine::constraints {

// Errc::bad_input for malformed texts and those that no output satisfies, unsupported for features
// that are not supported, full beyond the bounds.
Result<Grammar> compile_schema(const Json& schema);
Result<Grammar> compile_regex(std::string_view pattern);
Result<Grammar> compile_ebnf(std::string_view text);
/// Exactly one of the texts.
Result<Grammar> compile_choice(const std::vector<std::string>& texts);

}  // namespace troupe::engine::constraints

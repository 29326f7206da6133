// Constraint texts as finished grammars.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/constraints/grammar.h"
#include "engine/constraints/reasoning.h"

namespace troupe::engine::constraints {

// Errc::bad_input for malformed texts and those that no output satisfies, unsupported for features
// that are not supported, full beyond the bounds, which include one of the work; errors of
// check_cancelled(). `before`: what stands before the text.
/// `notes`: of add_json_schema().
Result<Grammar> compile_schema(const Json& schema, Reasoning before = Reasoning::none,
                               std::vector<std::string>* notes = nullptr);
Result<Grammar> compile_regex(std::string_view pattern, Reasoning before = Reasoning::none);
Result<Grammar> compile_ebnf(std::string_view text, Reasoning before = Reasoning::none);
/// Exactly one of the texts.
Result<Grammar> compile_choice(const std::vector<std::string>& texts,
                               Reasoning before = Reasoning::none);

}  // namespace troupe::engine::constraints

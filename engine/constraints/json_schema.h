// JSON schemas as grammars: of draft 2020-12, or of the one that $schema names, of which it decides
// whether keywords beside $ref apply.
//
// Every text of the grammar is valid JSON and satisfies the schema; not every instance of the
// schema has a text: members are written in the order of `properties`, without others unless
// `properties` is absent, and strings match a `pattern` as a whole.
#pragma once

#include <string_view>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/constraints/grammar.h"

namespace troupe::engine::constraints {

/// A rule for the instances of `schema`. Throws Failure: Errc::bad_input for malformed schemas,
/// unsupported for keywords that are not supported, full beyond the bounds. Messages have the place
/// in the schema ("#/properties/name"). What a user should know - keywords of
/// no draft, which are annotations, and counts from above that are taken as max_repetitions - is
/// added to `notes`.
Grammar::Rule add_json_schema(Grammar& grammar, const Json& schema,
                              std::vector<std::string>& notes);

/// Keywords with an effect on the grammar, and those that are ignored.
std::vector<std::string_view> schema_keywords();
std::vector<std::string_view> schema_annotations();

}  // namespace troupe::engine::constraints

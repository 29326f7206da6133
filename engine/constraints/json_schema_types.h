// Keywords of a JSON schema: which are supported, and their values. Functions throw Failure
// (Errc::bad_input for malformed values, unsupported) with the place in the schema, `where`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/constraints/json_rules.h"
#include "engine/constraints/repetition.h"

namespace troupe::engine::constraints {

enum class JsonType { null, boolean, integer, number, string, array, object };

[[noreturn]] void schema_mistake(const std::string& where, const std::string& what);
[[noreturn]] void schema_unsupported(const std::string& where, const std::string& what);

/// Refuses keywords that are neither supported nor annotations.
void check_keywords(const Json& schema, const std::string& where);
/// Refuses keywords beside `keyword`, except annotations, and `type` beside constants.
void check_alone(const Json& schema, std::string_view keyword, const std::string& where);

/// The values of `type`; empty when absent.
std::vector<JsonType> types_of(const Json& schema, const std::string& where);
/// The types that the keywords speak of, where `type` is absent.
std::vector<JsonType> implied_types(const Json& schema);
bool has_type(const Json& value, const std::vector<JsonType>& types);

/// Bounds on a length or a number of elements.
struct Counts {
  bool given = false;
  Repetitions counts;
};
Counts counts_of(const Json& schema, std::string_view least, std::string_view most,
                 const std::string& where);
/// minimum, maximum, exclusiveMinimum and exclusiveMaximum.
NumberBounds bounds_of(const Json& schema, const std::string& where);
/// The expression of `pattern` or `format`; "" without them.
std::string string_pattern(const Json& schema, const std::string& where);
/// The properties, and required ones that are not among them.
Json all_properties(const Json& schema, const std::string& where);
bool is_required(const Json& schema, std::string_view name);

/// Whether types or constants show that no instance satisfies both schemas.
bool are_exclusive(const Json& a, const Json& b);

/// A segment of a JSON pointer in a URI fragment without its escapes (~0, ~1, %XX).
std::string unescaped_pointer(const std::string& segment);
/// A member of an object, or an element of an array by its index; nullptr when there is none.
const Json* member_or_element(const Json& value, const std::string& key);

}  // namespace troupe::engine::constraints

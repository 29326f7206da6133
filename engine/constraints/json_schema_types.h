// Keywords of a JSON schema: which are supported, and their values. Functions throw Failure
// (Errc::bad_input for malformed values, unsupported) with the place in the schema, `where`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/constraints/json_rules.h"
#include "engine/constraints/repetition.h"
#include "engine/constraints/schema_path.h"

namespace troupe::engine::constraints {

/// Options of anyOf and oneOf, and combinations of the options of several.
inline constexpr std::size_t max_options = 1'000;

enum class JsonType : std::uint8_t { null, boolean, integer, number, string, array, object };

/// A set of types.
class JsonTypes {
 public:
  JsonTypes() = default;
  static JsonTypes all() {
    JsonTypes out;
    out.bits_ = 0x7F;
    return out;
  }
  void add(JsonType type) { bits_ |= bit(type); }
  bool has(JsonType type) const { return (bits_ & bit(type)) != 0; }
  bool empty() const { return bits_ == 0; }
  /// In the order of the enumeration.
  std::vector<JsonType> list() const;
  /// Keeps only what `other` has, too.
  void keep(JsonTypes other) { bits_ &= other.bits_; }
  /// Removes the values of the other types: integers with numbers.
  void remove(JsonTypes other) {
    if (other.has(JsonType::number)) other.add(JsonType::integer);
    bits_ &= ~other.bits_;
  }
  bool operator==(const JsonTypes&) const = default;

 private:
  static unsigned bit(JsonType type) { return 1U << static_cast<unsigned>(type); }
  unsigned bits_ = 0;
};
JsonType json_type_of(const Json& value);
/// The same for equal values, whatever the order of members and the form of numbers.
std::string canonical_text(const Json& value);

[[noreturn]] void schema_mistake(const SchemaPath& where, const std::string& what);
[[noreturn]] void schema_unsupported(const SchemaPath& where, const std::string& what);

/// Refuses assertions of JSON Schema that are not supported. What a user should know of the others
/// - keywords of no draft are annotations, counts from above are at most max_repetitions - is added
/// to `notes`, the first ones once each.
void check_keywords(const Json& schema, const SchemaPath& where, std::vector<std::string>& notes);
/// Whether a member of a schema can make a value invalid.
bool is_assertion(std::string_view keyword, const Json& value);

/// The values of `type`; empty when absent.
JsonTypes types_of(const Json& schema, const SchemaPath& where);
/// The types that the keywords speak of, where `type` is absent.
JsonTypes implied_types(const Json& schema);
bool has_type(const Json& value, JsonTypes types);

/// Narrows `counts` by two keywords; whether the schema has one of them.
bool narrow_counts(Repetitions& counts, const Json& schema, std::string_view least,
                   std::string_view most, const SchemaPath& where);
/// Narrows `bounds` by minimum, maximum, exclusiveMinimum, exclusiveMaximum and multipleOf.
void narrow_bounds(NumberBounds& bounds, const Json& schema, const SchemaPath& where);
/// A number without rounding.
long double exact_number(const Json& value);
/// Whether a number is a multiple of another one, in decimals.
bool is_multiple(const Json& value, const Json& divisor);
/// A string member; nullptr when there is none.
const std::string* text_of(const Json& schema, std::string_view keyword, const SchemaPath& where);

/// A segment of a JSON pointer in a URI fragment without its escapes (~0, ~1, %XX).
std::string unescaped_pointer(const std::string& segment);

}  // namespace troupe::engine::constraints

// Json: an ordered JSON value, and a bounded parser. The JSON library itself is fenced in json.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe {

/// A JSON value. Objects keep the order of their file (chat templates and checkpoints depend on
/// it); integers keep 64 bits.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  Json(const Json& other) : value_(copy_of(other.value_)) {}
  Json(Json&&) = default;
  Json& operator=(const Json& other) { return *this = Json(other); }
  Json& operator=(Json&&) = default;
  ~Json() = default;
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(std::uint64_t value) : value_(static_cast<std::int64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(Array items) : value_(std::move(items)) {}
  Json(Object members) : value_(std::move(members)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  /// "null", "boolean", "integer", "number", "string", "array", "object": for error messages.
  const char* type_name() const;

  // Each of these is a Bug on another type: look first, or use the checked readers below.
  bool boolean() const;
  std::int64_t integer() const;
  double number() const;  ///< integers too
  const std::string& string() const;
  const Array& array() const;
  const Object& object() const;
  Array& array();
  Object& object();

  /// The member called `key`, or nullptr (also when this is not an object). Linear: iterate
  /// object() for huge tables.
  const Json* find(std::string_view key) const;
  /// Sets or appends a member and returns this object, so that calls can be chained; a null value
  /// becomes an object first.
  Json& set(std::string key, Json value);

  /// Compact text ({"a":1,"b":[1,2]}), members in their order; doubles with the digits that read
  /// back the same.
  std::string dump() const;
  /// Text with one member per line, for reading.
  std::string dump(int indent) const;

  bool operator==(const Json&) const = default;

 private:
  using Value =
      std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object>;
  /// Where memory runs out within it, the copy constructor of libstdc++ 12's variant destroys a
  /// value that does not exist: it takes a variant of texts and vectors as never valueless.
  static Value copy_of(const Value& value);

  Value value_;
};

struct JsonLimits {
  std::size_t depth = 64;  ///< nesting; deeper text is refused before it is built
  /// Maximum length of the text. The number of values is limited to an eighth of it.
  std::size_t bytes = 64u << 20;
};

/// Parses one value and nothing after it. Refuses, with line and column: malformed text, text that
/// is not UTF-8, duplicate keys, NaN or Infinity, nesting beyond `limits.depth`. `where` (a path,
/// "row 7 of x.jsonl") starts every message. Errc::bad_input.
Result<Json> parse_json(std::string_view text, std::string_view where, JsonLimits limits = {});

/// Reads and parses a file (Errc::not_found, io, bad_input).
Result<Json> read_json(const std::string& path, JsonLimits limits = {});

// Checked readers for members of an object: nullptr-safe, with messages that name `where` and the
// key.
Result<std::int64_t> get_integer(const Json& object, std::string_view key, std::string_view where);
Result<double> get_number(const Json& object, std::string_view key, std::string_view where);
Result<bool> get_bool(const Json& object, std::string_view key, std::string_view where);
Result<std::string> get_string(const Json& object, std::string_view key, std::string_view where);

}  // namespace troupe

// Values as text: Python's str() and repr(), and json.dumps().
#pragma once

#include <optional>
#include <string>

#include "engine/jinja/value.h"

namespace troupe::engine::jinja {

/// str(value), as {{ value }} prints it.
std::string to_string(const Value& value);
std::string to_string(const Dict& dict);
/// repr(value).
std::string to_repr(const Value& value);
/// ascii(value): repr with nothing beyond ASCII.
std::string to_ascii(const Value& value);
std::string real_to_string(double value);

struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;
  std::optional<std::string> item_separator, key_separator;
};
/// json.dumps(value).
std::string to_json(const Value& value, const JsonStyle& style);

}  // namespace troupe::engine::jinja

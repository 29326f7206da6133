// The fast half of parse_json: simdjson reads valid text several times as fast as nlohmann/json,
// which reads the rest and states where and why a text is not valid.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "engine/base/json/json.h"

namespace troupe {

/// Bounds of a value that is built while its text is read.
struct JsonBounds {
  std::size_t depth = 0;         ///< nested lists and objects
  std::size_t values = 0;        ///< keys count too
  std::size_t in_container = 0;  ///< values of one list or object
};

/// The value of `text`, which is UTF-8. nullopt if it is not valid JSON, repeats a key or exceeds
/// the bounds, and for valid texts above 1 MiB or with integers beyond 64 bits with a sign.
std::optional<Json> parse_valid_json(std::string_view text, const JsonBounds& bounds);

/// The same by nlohmann/json. Errc::bad_input, as for parse_json.
Result<Json> parse_json_with_library(std::string_view text, std::string_view where,
                                     const JsonBounds& bounds);

/// The first member whose key repeats that of an earlier member.
std::optional<std::size_t> repeated_key(const Json::Object& members);

}  // namespace troupe

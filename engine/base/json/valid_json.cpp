#include "engine/base/json/valid_json.h"

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <utility>

namespace troupe {
namespace {

/// simdjson needs about ten times the length of a text, and a thread keeps what the longest needed.
constexpr std::size_t max_bytes = std::size_t{1} << 20;

// Every function returns false for a value that is left to nlohmann/json.
class Converter {
 public:
  explicit Converter(const JsonBounds& bounds) : bounds_(bounds) {}

  bool value(simdjson::dom::element from, Json& out, std::size_t depth) {
    if (!count()) return false;
    using enum simdjson::dom::element_type;
    switch (from.type()) {
      case OBJECT:
        return depth < bounds_.depth && object(from.get_object().value_unsafe(), out, depth + 1);
      case ARRAY:
        return depth < bounds_.depth && list(from.get_array().value_unsafe(), out, depth + 1);
      case STRING:
        out = std::string(from.get_string().value_unsafe());
        return true;
      case INT64:
        out = from.get_int64().value_unsafe();
        return true;
      case DOUBLE:
        out = from.get_double().value_unsafe();
        return true;
      case BOOL:
        out = from.get_bool().value_unsafe();
        return true;
      case NULL_VALUE:
        out = Json();
        return true;
      case UINT64:
        break;
    }
    return false;
  }

 private:
  bool count() { return ++values_ <= bounds_.values; }

  bool object(simdjson::dom::object from, Json& out, std::size_t depth) {
    Json::Object members;
    for (const auto [key, member] : from) {
      if (members.size() == bounds_.in_container || !count()) return false;
      auto& [name, value_of] = members.emplace_back();
      name = key;
      if (!value(member, value_of, depth)) return false;
    }
    if (members.size() > 1 && repeated_key(members)) return false;
    out = std::move(members);
    return true;
  }

  bool list(simdjson::dom::array from, Json& out, std::size_t depth) {
    Json::Array items;
    for (const simdjson::dom::element item : from) {
      if (items.size() == bounds_.in_container) return false;
      if (!value(item, items.emplace_back(), depth)) return false;
    }
    out = std::move(items);
    return true;
  }

  const JsonBounds& bounds_;
  std::size_t values_ = 0;
};

}  // namespace

std::optional<Json> parse_valid_json(std::string_view text, const JsonBounds& bounds) {
  if (text.size() > max_bytes) return std::nullopt;
  thread_local simdjson::dom::parser parser(max_bytes);
  simdjson::dom::element root;
  if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
  Json out;
  if (!Converter(bounds).value(root, out, 0)) return std::nullopt;
  return out;
}

}  // namespace troupe

#include "engine/constraints/json_schema_types.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "engine/base/text.h"
#include "engine/constraints/json_schema.h"

namespace troupe::engine::constraints {

namespace {

constexpr std::array<std::string_view, 7> type_names = {"null",   "boolean", "integer", "number",
                                                        "string", "array",   "object"};
/// Bounds beyond it are not exact in double precision.
constexpr double max_bound = 9'007'199'254'740'992;

constexpr std::array<std::pair<std::string_view, JsonType>, 18> keyword_types = {{
    {"minLength", JsonType::string},
    {"maxLength", JsonType::string},
    {"pattern", JsonType::string},
    {"format", JsonType::string},
    {"minimum", JsonType::number},
    {"maximum", JsonType::number},
    {"exclusiveMinimum", JsonType::number},
    {"exclusiveMaximum", JsonType::number},
    {"items", JsonType::array},
    {"prefixItems", JsonType::array},
    {"minItems", JsonType::array},
    {"maxItems", JsonType::array},
    {"properties", JsonType::object},
    {"required", JsonType::object},
    {"additionalProperties", JsonType::object},
    {"minProperties", JsonType::object},
    {"maxProperties", JsonType::object},
    {"uniqueItems", JsonType::array},
}};

constexpr std::string_view date_form =
    "[1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
    "02-(0[1-9]|1[0-9]|2[0-8]))";
constexpr std::string_view time_form =
    R"(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))";
constexpr std::string_view uuid_form =
    "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
constexpr std::string_view ipv4_form =
    R"(((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9]))";
constexpr std::string_view email_form =
    R"([A-Za-z0-9]+([._-][A-Za-z0-9]+){0,8}@[A-Za-z0-9]+([.-][A-Za-z0-9]+){0,8}\.[A-Za-z]{2,8})";

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::ranges::end(list);
}

std::string_view format_pattern(std::string_view name) {
  if (name == "date") return date_form;
  if (name == "time") return time_form;
  if (name == "uuid") return uuid_form;
  if (name == "ipv4") return ipv4_form;
  if (name == "email") return email_form;
  return "";
}

int count(const Json& value, std::string_view keyword, const std::string& where) {
  if (!value.is_integer() || value.integer() < 0)
    schema_mistake(where, cat(keyword, ": expected an integer of at least 0"));
  if (value.integer() > max_repetitions)
    schema_unsupported(where, cat(keyword, " is ", value.integer(), "; at most ", max_repetitions,
                                  " is supported"));
  return static_cast<int>(value.integer());
}

/// The values of `const` or `enum`, or nothing.
Json::Array constants_of(const Json& schema) {
  if (const Json* value = schema.find("const")) return {*value};
  const Json* values = schema.find("enum");
  return values != nullptr && values->is_array() ? values->array() : Json::Array{};
}

JsonType type_of(const Json& value) {
  const std::string_view name = value.type_name();
  return static_cast<JsonType>(std::ranges::find(type_names, name) - type_names.begin());
}

bool have_different_constants(const Json& a, const Json& b) {
  const Json::Array of_a = constants_of(a), of_b = constants_of(b);
  if (of_a.empty() || of_b.empty()) return false;
  return std::ranges::none_of(of_a, [&](const Json& value) {
    return std::ranges::any_of(of_b, [&](const Json& other) {
      return value == other ||
             (value.is_number() && other.is_number() && value.number() == other.number());
    });
  });
}

/// All types of the instances of a schema; all of them where nothing is said.
std::vector<JsonType> possible_types(const Json& schema) {
  std::vector<JsonType> types;
  for (const Json& value : constants_of(schema)) types.push_back(type_of(value));
  if (types.empty()) types = types_of(schema, "oneOf");
  if (types.empty()) types = implied_types(schema);
  return types;
}

}  // namespace

void schema_mistake(const std::string& where, const std::string& what) {
  throw Failure(Error{Errc::bad_input, cat("the JSON schema, ", where, ": ", what)});
}

void schema_unsupported(const std::string& where, const std::string& what) {
  throw Failure(Error{Errc::unsupported, cat("the JSON schema, ", where, ": ", what)});
}

std::vector<std::string_view> schema_keywords() {
  std::vector<std::string_view> out = {"type", "const", "enum", "anyOf", "oneOf", "allOf", "$ref"};
  for (const auto& [name, type] : keyword_types)
    if (name != "uniqueItems") out.push_back(name);
  return out;
}

std::vector<std::string_view> schema_annotations() {
  return {"title",         "description", "default", "examples", "deprecated",
          "$schema",       "$comment",    "$defs",   "readOnly", "writeOnly",
          "discriminator", "definitions", "$id"};
}

void check_keywords(const Json& schema, const std::string& where) {
  const auto keywords = schema_keywords(), annotations = schema_annotations();
  for (const auto& [name, value] : schema.object()) {
    if (contains(keywords, name) || contains(annotations, name)) continue;
    if (name == "uniqueItems" && value == Json(false)) continue;
    schema_unsupported(where, cat("the keyword ", quote(name), " is not supported"));
  }
}

void check_alone(const Json& schema, std::string_view keyword, const std::string& where) {
  const auto annotations = schema_annotations();
  const bool constant = keyword == "const" || keyword == "enum";
  for (const auto& [name, value] : schema.object()) {
    if (name == keyword || contains(annotations, name) || (constant && name == "type")) continue;
    schema_unsupported(where, cat(keyword, " beside ", name, " is not supported"));
  }
}

std::vector<JsonType> types_of(const Json& schema, const std::string& where) {
  const Json* type = schema.find("type");
  std::vector<JsonType> out;
  if (type == nullptr) return out;
  const Json::Array names = type->is_array() ? type->array() : Json::Array{*type};
  for (const Json& name : names) {
    const auto found = std::ranges::find(type_names, name.is_string() ? name.string() : "");
    if (found == type_names.end())
      schema_mistake(
          where, cat("type: expected one of ", join({type_names.begin(), type_names.end()}, ", "),
                     ", found ", quote(name.dump())));
    out.push_back(static_cast<JsonType>(found - type_names.begin()));
  }
  if (out.empty()) schema_mistake(where, "type: expected at least one type");
  return out;
}

std::vector<JsonType> implied_types(const Json& schema) {
  std::vector<JsonType> out;
  for (const auto& [name, type] : keyword_types) {
    if (schema.find(name) != nullptr && std::ranges::find(out, type) == out.end())
      out.push_back(type);
  }
  return out;
}

bool has_type(const Json& value, const std::vector<JsonType>& types) {
  const JsonType type = type_of(value);
  return std::ranges::any_of(types, [&](JsonType each) {
    return each == type || (each == JsonType::number && type == JsonType::integer);
  });
}

Counts counts_of(const Json& schema, std::string_view least, std::string_view most,
                 const std::string& where) {
  const Json* low = schema.find(least);
  const Json* high = schema.find(most);
  Counts out;
  out.given = low != nullptr || high != nullptr;
  if (low != nullptr) out.counts.least = count(*low, least, where);
  if (high != nullptr) out.counts.most = count(*high, most, where);
  if (out.counts.most && *out.counts.most < out.counts.least)
    schema_mistake(where, cat(least, " is above ", most));
  return out;
}

NumberBounds bounds_of(const Json& schema, const std::string& where) {
  NumberBounds out;
  const auto read = [&](std::string_view keyword) -> std::optional<double> {
    const Json* bound = schema.find(keyword);
    if (bound == nullptr) return std::nullopt;
    if (!bound->is_number()) schema_mistake(where, cat(keyword, ": expected a number"));
    if (!(std::abs(bound->number()) <= max_bound))
      schema_unsupported(where, cat(keyword, ": bounds beyond 2^53 are not supported"));
    return bound->number();
  };
  out.low = read("minimum");
  out.high = read("maximum");
  if (const auto low = read("exclusiveMinimum"); low && (!out.low || *low >= *out.low)) {
    out.low = low;
    out.low_open = true;
  }
  if (const auto high = read("exclusiveMaximum"); high && (!out.high || *high <= *out.high)) {
    out.high = high;
    out.high_open = true;
  }
  return out;
}

std::string string_pattern(const Json& schema, const std::string& where) {
  const Json* pattern = schema.find("pattern");
  const Json* format = schema.find("format");
  if (pattern != nullptr && !pattern->is_string())
    schema_mistake(where, "pattern: expected a string");
  if (format != nullptr && !format->is_string()) schema_mistake(where, "format: expected a string");
  if (format == nullptr) return pattern == nullptr ? "" : pattern->string();
  if (pattern != nullptr) schema_unsupported(where, "pattern beside format is not supported");
  if (schema.find("minLength") != nullptr || schema.find("maxLength") != nullptr)
    schema_unsupported(where, "format with minLength or maxLength is not supported");
  if (format->string() == "date-time") return cat(date_form, "T", time_form);
  const std::string_view found = format_pattern(format->string());
  if (found.empty())
    schema_unsupported(where,
                       cat("format ", quote(format->string()),
                           " is not supported; supported: date, time, date-time, uuid, ipv4, "
                           "email"));
  return std::string(found);
}

bool is_required(const Json& schema, std::string_view name) {
  const Json* required = schema.find("required");
  return required != nullptr && required->is_array() &&
         std::ranges::find(required->array(), Json(name)) != required->array().end();
}

Json all_properties(const Json& schema, const std::string& where) {
  const Json* properties = schema.find("properties");
  const Json* required = schema.find("required");
  const Json* others = schema.find("additionalProperties");
  if (properties != nullptr && !properties->is_object())
    schema_mistake(where, "properties: expected an object");
  Json out = properties == nullptr ? Json(Json::Object{}) : *properties;
  if (required == nullptr) return out;
  if (!required->is_array()) schema_mistake(where, "required: expected a list of names");
  for (const Json& name : required->array()) {
    if (!name.is_string()) schema_mistake(where, "required: expected a list of names");
    if (out.find(name.string()) == nullptr)
      out.set(name.string(), others == nullptr ? Json(true) : *others);
  }
  return out;
}

bool are_exclusive(const Json& a, const Json& b) {
  if (!a.is_object() || !b.is_object()) return false;
  if (have_different_constants(a, b)) return true;
  const auto of_a = possible_types(a), of_b = possible_types(b);
  const auto is_number = [](JsonType t) { return t == JsonType::integer || t == JsonType::number; };
  const bool overlap = of_a.empty() || of_b.empty() || std::ranges::any_of(of_a, [&](JsonType x) {
                         return std::ranges::any_of(of_b, [&](JsonType y) {
                           return x == y || (is_number(x) && is_number(y));
                         });
                       });
  if (!overlap) return true;
  const Json* of_first = a.find("properties");
  const Json* of_second = b.find("properties");
  if (of_first == nullptr || of_second == nullptr || !of_first->is_object()) return false;
  const std::vector<JsonType> object = {JsonType::object};
  if (of_a != object || of_b != object) return false;
  return std::ranges::any_of(of_first->object(), [&](const auto& member) {
    const Json* other = of_second->find(member.first);
    return other != nullptr && is_required(a, member.first) && is_required(b, member.first) &&
           have_different_constants(member.second, *other);
  });
}

std::string unescaped_pointer(const std::string& segment) {
  std::string out;
  for (std::size_t at = 0; at < segment.size(); ++at) {
    const std::string_view rest = std::string_view(segment).substr(at);
    unsigned value = 0;
    if (rest.starts_with("~0") || rest.starts_with("~1")) {
      out += rest[1] == '0' ? '~' : '/';
      ++at;
    } else if (rest.size() > 2 && rest[0] == '%' &&
               std::from_chars(rest.data() + 1, rest.data() + 3, value, 16).ptr ==
                   rest.data() + 3) {
      out += static_cast<char>(value);
      at += 2;
    } else {
      out += rest[0];
    }
  }
  return out;
}

const Json* member_or_element(const Json& value, const std::string& key) {
  if (!value.is_array()) return value.find(key);
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error != std::errc() || end != key.data() + key.size() || index >= value.array().size())
    return nullptr;
  return &value.array()[index];
}

}  // namespace troupe::engine::constraints

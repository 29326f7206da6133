#include "engine/constraints/json_schema_types.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <unordered_map>

#include "engine/base/text.h"
#include "engine/constraints/json_schema.h"

namespace troupe::engine::constraints {

namespace {

constexpr std::array<std::string_view, 7> type_names = {"null",   "boolean", "integer", "number",
                                                        "string", "array",   "object"};
/// Bounds beyond it are not exact in double precision.
constexpr double max_bound = 9'007'199'254'740'992;
constexpr std::size_t max_properties = 5'000;

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

/// Assertions of any draft, and keywords that change what others mean.
constexpr std::array<std::string_view, 24> unsupported_assertions = {
    "not",           "if",
    "then",          "else",
    "contains",      "minContains",
    "maxContains",   "unevaluatedItems",
    "propertyNames", "unevaluatedProperties",
    "multipleOf",    "patternProperties",
    "dependencies",  "dependentRequired",
    "divisibleBy",   "dependentSchemas",
    "extends",       "additionalItems",
    "disallow",      "$dynamicRef",
    "$recursiveRef", "$dynamicAnchor",
    "$vocabulary",   "$recursiveAnchor"};

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

/// 2.0 is an integer, too.
int count(const Json& value, std::string_view keyword, const SchemaPath& where) {
  if (!value.is_number() || value.number() < 0 || value.number() != std::floor(value.number()))
    schema_mistake(where, cat(keyword, ": expected an integer of at least 0"));
  if (value.number() > max_repetitions)
    schema_unsupported(
        where, cat(keyword, " is ", value.dump(), "; at most ", max_repetitions, " is supported"));
  return static_cast<int>(value.number());
}

}  // namespace

void schema_mistake(const SchemaPath& where, const std::string& what) {
  throw Failure(Error{Errc::bad_input, cat("the JSON schema, ", where.text(), ": ", what)});
}

void schema_unsupported(const SchemaPath& where, const std::string& what) {
  throw Failure(Error{Errc::unsupported, cat("the JSON schema, ", where.text(), ": ", what)});
}

std::vector<JsonType> JsonTypes::list() const {
  std::vector<JsonType> out;
  for (std::size_t i = 0; i < type_names.size(); ++i)
    if (has(static_cast<JsonType>(i))) out.push_back(static_cast<JsonType>(i));
  return out;
}

JsonType json_type_of(const Json& value) {
  const std::string_view name = value.type_name();
  return static_cast<JsonType>(std::ranges::find(type_names, name) - type_names.begin());
}

std::string canonical_text(const Json& value) {
  if (value.is_integer()) return Json(static_cast<double>(value.integer())).dump();
  if (value.is_number()) return Json(value.number() + 0.0).dump();  // no -0
  std::string out;
  if (value.is_array()) {
    for (const Json& each : value.array())
      out.append(out.empty() ? "[" : ",") += canonical_text(each);
    return out + "]";
  }
  if (!value.is_object()) return value.dump();
  std::vector<const std::pair<std::string, Json>*> members;
  for (const auto& member : value.object()) members.push_back(&member);
  std::ranges::sort(members, {},
                    [](const auto* member) -> const std::string& { return member->first; });
  for (const auto* member : members)
    out.append(out.empty() ? "{" : ",") +=
        cat(Json(member->first).dump(), ":", canonical_text(member->second));
  return out + "}";
}

std::vector<std::string_view> schema_keywords() {
  std::vector<std::string_view> out = {"type", "const", "enum", "anyOf", "oneOf", "allOf", "$ref"};
  for (const auto& [name, type] : keyword_types)
    if (name != "uniqueItems") out.push_back(name);
  return out;
}

std::vector<std::string_view> schema_annotations() {
  return {"title",           "description",      "default",      "examples", "deprecated",
          "$schema",         "$comment",         "$defs",        "readOnly", "writeOnly",
          "discriminator",   "definitions",      "$id",          "id",       "$anchor",
          "contentEncoding", "contentMediaType", "contentSchema"};
}

void check_keywords(const Json& schema, const SchemaPath& where,
                    std::vector<std::string>& ignored) {
  const auto keywords = schema_keywords(), annotations = schema_annotations();
  for (const auto& [name, value] : schema.object()) {
    if (contains(keywords, name) || contains(annotations, name)) continue;
    if (name == "uniqueItems" && value == Json(false)) continue;
    if (name == "uniqueItems" || contains(unsupported_assertions, name))
      schema_unsupported(where, cat("the keyword ", quote(name), " is not supported"));
    constexpr std::size_t max_ignored = 32;
    if (ignored.size() < max_ignored && !contains(ignored, name)) ignored.push_back(name);
  }
}

void check_alone(const Json& schema, std::string_view keyword, const SchemaPath& where) {
  const auto keywords = schema_keywords();
  const bool constant = keyword == "const" || keyword == "enum";
  for (const auto& [name, value] : schema.object()) {
    if (name == keyword || !contains(keywords, name) || (constant && name == "type")) continue;
    schema_unsupported(where, cat(keyword, " beside ", name, " is not supported"));
  }
}

JsonTypes types_of(const Json& schema, const SchemaPath& where) {
  const Json* type = schema.find("type");
  JsonTypes out;
  if (type == nullptr) return out;
  const auto names =
      type->is_array() ? std::span<const Json>(type->array()) : std::span<const Json>(type, 1);
  for (const Json& name : names) {
    const auto found = std::ranges::find(type_names, name.is_string() ? name.string() : "");
    if (found == type_names.end())
      schema_mistake(
          where, cat("type: expected one of ", join({type_names.begin(), type_names.end()}, ", "),
                     ", found ", quote(name.dump())));
    out.add(static_cast<JsonType>(found - type_names.begin()));
  }
  if (out.empty()) schema_mistake(where, "type: expected at least one type");
  return out;
}

JsonTypes implied_types(const Json& schema) {
  JsonTypes out;
  for (const auto& [name, type] : keyword_types)
    if (schema.find(name) != nullptr) out.add(type);
  return out;
}

bool has_type(const Json& value, JsonTypes types) {
  const JsonType type = json_type_of(value);
  return types.has(type) || (type == JsonType::integer && types.has(JsonType::number));
}

Counts counts_of(const Json& schema, std::string_view least, std::string_view most,
                 const SchemaPath& where) {
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

NumberBounds bounds_of(const Json& schema, const SchemaPath& where) {
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

std::string string_pattern(const Json& schema, const SchemaPath& where) {
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

std::vector<Property> properties_of(const Json& schema, const SchemaPath& where) {
  const Json* properties = schema.find("properties");
  const Json* required = schema.find("required");
  const Json* others = schema.find("additionalProperties");
  if (properties != nullptr && !properties->is_object())
    schema_mistake(where, "properties: expected an object");
  if (required != nullptr && !required->is_array())
    schema_mistake(where, "required: expected a list of names");
  std::vector<Property> out;
  std::unordered_map<std::string_view, std::size_t> places;
  const auto place = [&](std::string_view name, const Json* described) {
    const auto [found, is_new] = places.try_emplace(name, out.size());
    if (is_new) out.push_back({name, described});
    if (out.size() > max_properties)
      schema_unsupported(
          where, cat("an object of more than ", max_properties, " properties is not supported"));
    return found->second;
  };
  if (properties != nullptr)
    for (const auto& [name, described] : properties->object()) place(name, &described);
  if (required == nullptr) return out;
  for (const Json& name : required->array()) {
    if (!name.is_string()) schema_mistake(where, "required: expected a list of names");
    out[place(name.string(), others)].required = true;
  }
  return out;
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

}  // namespace troupe::engine::constraints

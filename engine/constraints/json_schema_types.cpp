#include "engine/constraints/json_schema_types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/constraints/formats.h"
#include "engine/constraints/json_schema.h"

namespace troupe::engine::constraints {

namespace {

constexpr std::array<std::string_view, 7> type_names = {"null",   "boolean", "integer", "number",
                                                        "string", "array",   "object"};
constexpr std::array<std::pair<std::string_view, JsonType>, 26> keyword_types = {{
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
    {"multipleOf", JsonType::number},
    {"additionalItems", JsonType::array},
    {"patternProperties", JsonType::object},
    {"propertyNames", JsonType::object},
    {"dependencies", JsonType::object},
    {"dependentRequired", JsonType::object},
    {"dependentSchemas", JsonType::object},
    {"unevaluatedProperties", JsonType::object},
}};

/// Assertions of any draft, and keywords that change what others mean.
constexpr std::array<std::string_view, 12> unsupported_assertions = {
    "contains",      "minContains",    "maxContains", "unevaluatedItems",
    "divisibleBy",   "extends",        "disallow",    "$dynamicRef",
    "$recursiveRef", "$dynamicAnchor", "$vocabulary", "$recursiveAnchor"};

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::ranges::end(list);
}

/// Of a number in a message. One beyond 64 bits has been read as a double, which has other digits.
std::string digits_of(const Json& number) {
  constexpr double bound = 9223372036854775808.0;  // 2^63
  return std::abs(number.number()) >= bound ? "beyond 64 bits" : number.dump();
}

constexpr std::string_view counts_from_above[] = {"maxLength", "maxItems", "maxProperties"};

/// 2.0 is an integer, too. A bound from above may be any; larger texts are not written, which
/// note_of() says.
int count(const Json& value, std::string_view keyword, const SchemaPath& where,
          bool capped = false) {
  if (!value.is_number() || value.number() < 0 || value.number() != std::floor(value.number()))
    schema_mistake(where, cat(keyword, ": expected an integer of at least 0"));
  if (value.number() > max_repetitions && capped) return max_repetitions;
  if (value.number() > max_repetitions)
    schema_unsupported(where, cat(keyword, " is ", digits_of(value), "; at most ", max_repetitions,
                                  " is supported"));
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
  std::vector<std::string_view> out = {"type", "const", "enum", "anyOf", "oneOf", "allOf",
                                       "$ref", "not",   "if",   "then",  "else"};
  for (const auto& [name, type] : keyword_types) out.push_back(name);
  return out;
}

std::vector<std::string_view> schema_annotations() {
  return {"title",           "description",      "default",      "examples", "deprecated",
          "$schema",         "$comment",         "$defs",        "readOnly", "writeOnly",
          "discriminator",   "definitions",      "$id",          "id",       "$anchor",
          "contentEncoding", "contentMediaType", "contentSchema"};
}

namespace {

/// What a user should know about a keyword; nothing for one that means what the schema says.
std::string note_of(const std::string& name, const Json& value, const SchemaPath& where) {
  static const auto keywords = schema_keywords(), annotations = schema_annotations();
  constexpr std::string_view unknown = " is of no draft of JSON Schema and is ignored";
  if (contains(annotations, name)) return "";
  if (name == "format" && value.is_string() && format_pattern(value.string()).empty())
    return cat("the format ", quote(value.string()), unknown);
  if (contains(counts_from_above, name) && value.is_number() && value.number() > max_repetitions)
    return cat(name, " is above ", max_repetitions, ", and outputs are written as if it were that");
  if (contains(keywords, name)) return "";
  if (contains(unsupported_assertions, name))
    schema_unsupported(where, cat("the keyword ", quote(name), " is not supported"));
  return cat("the keyword ", quote(name), unknown);
}

}  // namespace

void check_keywords(const Json& schema, const SchemaPath& where, std::vector<std::string>& notes) {
  constexpr std::size_t max_notes = 32;
  for (const auto& [name, value] : schema.object()) {
    std::string note = note_of(name, value, where);
    if (!note.empty() && notes.size() < max_notes && !contains(notes, note))
      notes.push_back(std::move(note));
  }
}

bool is_assertion(std::string_view keyword, const Json& value) {
  static const auto keywords = schema_keywords();
  if (keyword == "then" || keyword == "else" || !contains(keywords, keyword)) return false;
  if (keyword == "uniqueItems") return !(value == Json(false));
  if (keyword == "additionalProperties" || keyword == "items" || keyword == "additionalItems")
    return !(value == Json(true)) && !(value == Json(Json::Object{}));
  if (keyword == "format") return !value.is_string() || !format_pattern(value.string()).empty();
  return true;
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

bool narrow_counts(Repetitions& counts, const Json& schema, std::string_view least,
                   std::string_view most, const SchemaPath& where) {
  const Json* low = schema.find(least);
  const Json* high = schema.find(most);
  Repetitions own;
  if (low != nullptr) own.least = count(*low, least, where);
  if (high != nullptr) own.most = count(*high, most, where, true);
  if (own.most && *own.most < own.least) schema_mistake(where, cat(least, " is above ", most));
  counts.least = std::max(counts.least, own.least);
  if (own.most) counts.most = std::min(*own.most, counts.most.value_or(*own.most));
  return low != nullptr || high != nullptr;
}

long double exact_number(const Json& value) {
  return value.is_integer() ? static_cast<long double>(value.integer())
                            : static_cast<long double>(value.number());
}

namespace {

/// A decimal number as digits, a whole number, and how many of them stand behind the point;
/// nothing when there are more than 18 digits.
struct Decimal {
  std::int64_t digits = 0;
  int places = 0;
};
std::optional<Decimal> decimal_of(const Json& value) {
  if (value.is_integer()) return Decimal{value.integer(), 0};
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value.number(),
                                          std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  Decimal out;
  bool behind = false;
  int digits = 0;
  for (const char* at = text.data(); at != end; ++at) {
    if (*at == '.') behind = true;
    if (*at < '0' || *at > '9') continue;
    if (out.digits != 0 && ++digits > 17) return std::nullopt;
    out.digits = 10 * out.digits + (*at - '0');
    out.places += behind ? 1 : 0;
  }
  if (text[0] == '-') out.digits = -out.digits;
  return out;
}

/// Narrows the bounds to multiples of `divisor`, which is positive.
void narrow_multiples(NumberBounds& bounds, const Json& divisor, const SchemaPath& where) {
  constexpr std::int64_t max_divisor = 10'000;
  auto exact = decimal_of(divisor);
  while (exact && exact->places > 0 && exact->digits % 10 == 0) {
    exact->digits /= 10;
    --exact->places;
  }
  if (exact && exact->digits == 1 && exact->places > 0) {
    bounds.places = std::min(exact->places, bounds.places.value_or(exact->places));
    return;
  }
  bounds.places = 0;  // multiples that are integers
  std::int64_t scale = 1;
  for (int i = 0; exact && i < exact->places && scale < max_divisor; ++i) scale *= 10;
  const std::int64_t own = exact ? exact->digits / std::gcd(exact->digits, scale) : 0;
  const std::int64_t all =
      own <= 0 ? 0 : std::lcm<std::int64_t>(bounds.divisor, std::min(own, max_divisor));
  if (own <= 0 || own > max_divisor || all > max_divisor || scale > max_divisor)
    schema_unsupported(where, cat("multipleOf: ", digits_of(divisor),
                                  " is not supported; multiples of "
                                  "integers up to 10000 and of decimals such as 0.01 are"));
  bounds.divisor = static_cast<std::int32_t>(all);
}

}  // namespace

bool is_multiple(const Json& value, const Json& divisor) {
  auto number = decimal_of(value), unit = decimal_of(divisor);
  if (!number || !unit || unit->digits <= 0) return false;
  for (; number->places < unit->places; ++number->places)
    if (__builtin_mul_overflow(number->digits, std::int64_t{10}, &number->digits)) return false;
  for (; unit->places < number->places; ++unit->places)
    if (__builtin_mul_overflow(unit->digits, std::int64_t{10}, &unit->digits)) return false;
  return number->digits % unit->digits == 0;
}

void narrow_bounds(NumberBounds& bounds, const Json& schema, const SchemaPath& where) {
  const auto read = [&](std::string_view keyword) -> std::optional<long double> {
    const Json* bound = schema.find(keyword);
    if (bound == nullptr || bound->is_bool()) return std::nullopt;
    if (!bound->is_number()) schema_mistake(where, cat(keyword, ": expected a number"));
    return exact_number(*bound);
  };
  const auto is_set = [&](std::string_view keyword) {  // in draft 4, a flag of the bound
    const Json* flag = schema.find(keyword);
    return flag != nullptr && *flag == Json(true);
  };
  constexpr long double limit = 9'223'372'036'854'775'807.0L;
  const auto low = read("minimum"), high = read("maximum");
  const auto above = read("exclusiveMinimum"), below = read("exclusiveMaximum");
  if (low) bounds.at_least(*low, is_set("exclusiveMinimum"));
  if (above) bounds.at_least(*above, true);
  if (high) bounds.at_most(*high, is_set("exclusiveMaximum"));
  if (below) bounds.at_most(*below, true);
  if ((bounds.low && *bounds.low > limit) || (bounds.high && *bounds.high < -limit))
    schema_unsupported(where, "numbers beyond 2^63 are not supported");
  const Json* divisor = schema.find("multipleOf");
  if (divisor == nullptr) return;
  if (!divisor->is_number() || !(divisor->number() > 0))
    schema_mistake(where, "multipleOf: expected a number above 0");
  narrow_multiples(bounds, *divisor, where);
}

const std::string* text_of(const Json& schema, std::string_view keyword, const SchemaPath& where) {
  const Json* text = schema.find(keyword);
  if (text == nullptr) return nullptr;
  if (!text->is_string()) schema_mistake(where, cat(keyword, ": expected a string"));
  return &text->string();
}

std::string unescaped_pointer(const std::string& segment) {
  std::string out;
  for (std::size_t at = 0; at < segment.size(); ++at) {
    const std::string_view rest = std::string_view(segment).substr(at);
    const auto value =
        rest.size() > 2 ? parse_number<unsigned>(rest.substr(1, 2), 16) : std::nullopt;
    if (rest.starts_with("~0") || rest.starts_with("~1")) {
      out += rest[1] == '0' ? '~' : '/';
      ++at;
    } else if (rest[0] == '%' && value) {
      out += static_cast<char>(*value);
      at += 2;
    } else {
      out += rest[0];
    }
  }
  return out;
}

}  // namespace troupe::engine::constraints

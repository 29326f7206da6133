#include "tests/engine/constraints/schema_validator.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"

namespace troupe::test {

namespace {

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "number") return value.is_number();
  if (type == "integer") return value.is_number() && value.number() == std::floor(value.number());
  return value.type_name() == type;
}

bool has_type(const Json& value, const Json& type) {
  if (type.is_string()) return is_of_type(value, type.string());
  return std::ranges::any_of(type.array(),
                             [&](const Json& each) { return is_of_type(value, each.string()); });
}

double bound(const Json& schema, const char* key, double otherwise) {
  const Json* found = schema.find(key);
  return found ? found->number() : otherwise;
}

bool number_is_within(const Json& value, const Json& schema) {
  constexpr double inf = INFINITY;
  const double x = value.number();
  return std::isfinite(x) && x >= bound(schema, "minimum", -inf) &&
         x <= bound(schema, "maximum", inf) && x > bound(schema, "exclusiveMinimum", -inf) &&
         x < bound(schema, "exclusiveMaximum", inf);
}

bool text_is_within(const std::string& text, const Json& schema) {
  const auto length = static_cast<double>(count_code_points(text));
  const Json* pattern = schema.find("pattern");
  return length >= bound(schema, "minLength", 0) && length <= bound(schema, "maxLength", 1e9) &&
         (pattern == nullptr || std::regex_search(text, std::regex(pattern->string())));
}

bool list_is_within(const Json::Array& list, const Json& schema, const Json& root) {
  const auto length = static_cast<double>(list.size());
  if (length < bound(schema, "minItems", 0) || length > bound(schema, "maxItems", 1e9))
    return false;
  const Json* prefix = schema.find("prefixItems");
  const Json* items = schema.find("items");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool first = prefix != nullptr && i < prefix->array().size();
    const Json* each = first ? &prefix->array()[i] : items;
    if (each != nullptr && !is_instance(list[i], *each, root)) return false;
  }
  return true;
}

bool members_are_instances(const Json& value, const Json& schema, const Json& root) {
  const Json* properties = schema.find("properties");
  const Json* others = schema.find("additionalProperties");
  const auto size = static_cast<double>(value.object().size());
  if (size > bound(schema, "maxProperties", 1e9)) return false;
  for (const auto& [name, member] : value.object()) {
    const Json* known = properties ? properties->find(name) : nullptr;
    const Json* wanted = known ? known : others;
    if (wanted != nullptr && !is_instance(member, *wanted, root)) return false;
  }
  const Json* required = schema.find("required");
  return required == nullptr || std::ranges::all_of(required->array(), [&](const Json& name) {
           return value.find(name.string()) != nullptr;
         });
}

const Json& resolve(const std::string& pointer, const Json& root) {
  const Json* at = &root;
  for (std::size_t begin = pointer.find('/'); begin < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', begin + 1), pointer.size());
    at = at->find(pointer.substr(begin + 1, end - begin - 1));
    check(at != nullptr, "a reference without target");
    begin = end;
  }
  return *at;
}

std::size_t instances_among(const Json& options, const Json& value, const Json& root) {
  return static_cast<std::size_t>(std::ranges::count_if(
      options.array(), [&](const Json& each) { return is_instance(value, each, root); }));
}

/// A schema of a value without parts.
Json random_leaf(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
  switch (random() % 9) {
    case 0:
      return Json::Object{{"type", "boolean"}};
    case 1:
      return Json::Object{{"type", Json::Array{"null", "integer"}}};
    case 2:
      return Json::Object{{"type", "number"}};
    case 3: {
      const std::int64_t low = below(3000) - 1500;
      return Json::Object{{"type", "integer"}, {"minimum", low}, {"maximum", low + below(5000)}};
    }
    case 4:
      return Json::Object{{"type", "number"},
                          {"exclusiveMinimum", static_cast<double>(below(100)) / 4 - 20},
                          {"maximum", below(50) + 10}};
    case 5:
      return Json::Object{{"enum", Json::Array{"red", 7, nullptr, "gr\"ün\n", 2.5}}};
    case 6:
      return Json::Object{{"const", Json::Object{{"a", Json::Array{1, "x"}}}}};
    case 7:
      return Json::Object{{"type", "string"}, {"pattern", "^[a-f\"]{1,4}(-[0-9]|\\\\)?$"}};
    default: {
      const std::int64_t least = below(4);
      return Json::Object{
          {"type", "string"}, {"minLength", least}, {"maxLength", least + below(12)}};
    }
  }
}

Json random_object(std::mt19937& random, int depth) {
  if (random() % 5 == 0) {
    return Json::Object{{"type", "object"},
                        {"additionalProperties", random_schema(random, depth - 1)},
                        {"maxProperties", static_cast<std::int64_t>(random() % 2)}};
  }
  Json properties = Json::Object{};
  Json::Array required;
  const std::size_t count = random() % 5;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = cat(i % 3 == 2 ? "näme \"" : "key_", i);
    properties.set(name, random_schema(random, depth - 1));
    if (random() % 2 == 0) required.emplace_back(name);
  }
  return Json::Object{{"type", "object"},
                      {"properties", std::move(properties)},
                      {"required", std::move(required)},
                      {"additionalProperties", false}};
}

}  // namespace

bool is_instance(const Json& value, const Json& schema, const Json& root) {
  if (schema.is_bool()) return schema.boolean();
  if (const Json* pointer = schema.find("$ref"))
    return is_instance(value, resolve(pointer->string(), root), root);
  if (const Json* type = schema.find("type"); type != nullptr && !has_type(value, *type))
    return false;
  if (const Json* constant = schema.find("const"); constant && !(*constant == value)) return false;
  if (const Json* values = schema.find("enum"))
    if (std::ranges::find(values->array(), value) == values->array().end()) return false;
  if (const Json* options = schema.find("anyOf"))
    if (instances_among(*options, value, root) == 0) return false;
  if (const Json* options = schema.find("oneOf"))
    if (instances_among(*options, value, root) != 1) return false;
  if (value.is_number()) return number_is_within(value, schema);
  if (value.is_string()) return text_is_within(value.string(), schema);
  if (value.is_array()) return list_is_within(value.array(), schema, root);
  if (value.is_object()) return members_are_instances(value, schema, root);
  return true;
}

Json random_schema(std::mt19937& random, int depth) {
  if (depth <= 0 || random() % 3 == 0) return random_leaf(random);
  if (random() % 6 == 0) {
    Json::Array options;
    for (int i = 0; i < 2; ++i) options.push_back(random_schema(random, depth - 1));
    return Json::Object{{"anyOf", std::move(options)}};
  }
  if (random() % 3 != 0) return random_object(random, depth);
  const auto least = static_cast<std::int64_t>(random() % 2);
  const auto most = least + static_cast<std::int64_t>(random() % 3);
  return Json::Object{{"type", "array"},
                      {"items", random_schema(random, depth - 1)},
                      {"minItems", least},
                      {"maxItems", most}};
}

}  // namespace troupe::test

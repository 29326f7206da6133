#include "engine/constraints/negation.h"

#include <algorithm>
#include <array>

#include "engine/base/text/text.h"

namespace troupe::engine::constraints {

namespace {

using Object = Json::Object;

/// A keyword that bounds something, and the keyword that describes what is beyond the bound: with
/// the same number, or one more or less.
struct Opposite {
  std::string_view keyword, type, beyond;
  int difference = 0;
};
constexpr std::array<Opposite, 10> opposites = {{
    {"minLength", "string", "maxLength", -1},
    {"maxLength", "string", "minLength", 1},
    {"minItems", "array", "maxItems", -1},
    {"maxItems", "array", "minItems", 1},
    {"minProperties", "object", "maxProperties", -1},
    {"maxProperties", "object", "minProperties", 1},
    {"minimum", "number", "exclusiveMaximum"},
    {"maximum", "number", "exclusiveMinimum"},
    {"exclusiveMinimum", "number", "maximum"},
    {"exclusiveMaximum", "number", "minimum"},
}};

}  // namespace

bool is_plain_negation(const Json& schema) {
  if (schema.object().size() != 1) return false;
  const auto& [keyword, value] = schema.object().front();
  if (keyword == "type" || keyword == "pattern") return true;
  return keyword == "enum" && value.is_array() &&
         std::ranges::none_of(value.array(), [](const Json& each) {
           return each.is_number() || each.is_array() || each.is_object();
         });
}

Atom* Negation::made(Object schema, bool negated) {
  Atom* out = parts_.atom(parts_.made(std::move(schema)), *atom_.where, &atom_);
  out->negated = negated;
  return out;
}

Atom* Negation::child(const Json& schema, const SchemaPath& where, bool negated) {
  Atom* out = parts_.atom(schema, where, &atom_);
  out->negated = negated;
  return out;
}

std::vector<Atoms> Negation::options() {
  std::string_view first;
  const bool alone = source_.references_stand_alone() && atom_.schema->find("$ref") != nullptr;
  for (const auto& [keyword, value] : atom_.schema->object()) {
    if (!is_assertion(keyword, value) || (alone && keyword != "$ref")) continue;
    if (first.empty()) first = keyword;
    add(keyword, value);
  }
  if (options_.empty() && !first.empty())
    schema_unsupported(*atom_.where, cat("the negation of ", quote(first),
                                         ", which not, if or a oneOf of overlapping options "
                                         "needs, is not supported"));
  return std::move(options_);
}

void Negation::add(std::string_view keyword, const Json& value) {
  if (value.is_number()) add_beyond(keyword, value);
  if (keyword == "$ref" && value.is_string()) {
    const Json& target = source_.find(*atom_.schema, value.string(), *atom_.where);
    options_.push_back({child(target, parts_.path(value.string()), true)});
  } else if (keyword == "type") {
    options_.push_back({made({{"type", value}}, true)});
  } else if (keyword == "pattern") {
    options_.push_back({made({{"type", "string"}}), made({{"pattern", value}}, true)});
  } else if (keyword == "enum") {
    add_constants(value);
  } else if (keyword == "const") {
    add_constants(Json::Array{value});
  } else if (keyword == "not") {
    options_.push_back({child(value, parts_.path(atom_, keyword), false)});
  } else if (keyword == "properties" && value.is_object()) {
    add_members(value);
  } else {
    add_lists(keyword, value);
  }
}

void Negation::add_beyond(std::string_view keyword, const Json& value) {
  const auto found = std::ranges::find(opposites, keyword, &Opposite::keyword);
  if (found == opposites.end()) return;
  const double bound = value.number() + found->difference;
  if (found->difference != 0 && bound < 0) return;  // never violated
  options_.push_back(
      {made({{"type", found->type},
             {std::string(found->beyond), found->difference == 0 ? value : Json(bound)}})});
}

void Negation::add_lists(std::string_view keyword, const Json& value) {
  if (keyword == "required" && value.is_array()) {
    for (const Json& name : value.array())
      if (name.is_string())
        options_.push_back(
            {made({{"type", "object"}, {"properties", Object{{name.string(), false}}}})});
    return;
  }
  if (keyword != "allOf" && keyword != "anyOf" && keyword != "oneOf") return;
  std::size_t index = 0;
  Atoms all;
  for (const Json& each : schemas_of(atom_, keyword))
    all.push_back(child(each, parts_.path(atom_, keyword, index++), true));
  if (keyword != "allOf") return options_.push_back(std::move(all));
  for (const Atom* each : all) options_.push_back({each});
}

/// Other values than the constants: of numbers, those between them.
void Negation::add_constants(const Json& values) {
  if (!values.is_array()) return;
  Json::Array others, numbers;
  for (const Json& each : values.array()) {
    if (each.is_array() || each.is_object()) return;
    (each.is_number() ? numbers : others).push_back(each);
  }
  Atoms option;
  if (!numbers.empty())
    option.push_back(made({{"type", Json::Array{"null", "boolean", "string", "array", "object"}}}));
  if (!others.empty()) option.push_back(made({{"enum", std::move(others)}}, true));
  options_.push_back(std::move(option));
  std::ranges::sort(numbers, {}, [](const Json& each) { return exact_number(each); });
  for (std::size_t i = 0; i <= numbers.size() && !numbers.empty(); ++i) {
    Object between = {{"type", "number"}};
    if (i > 0) between.emplace_back("exclusiveMinimum", numbers[i - 1]);
    if (i < numbers.size()) between.emplace_back("exclusiveMaximum", numbers[i]);
    options_.push_back({made(std::move(between))});
  }
}

/// An object that has a member of which the value is wrong.
void Negation::add_members(const Json& properties) {
  if (source_.has_resources()) return;  // a copy has no place in them
  for (const auto& [name, schema] : properties.object()) {
    if (schema == Json(true)) continue;
    parts_.spend(schema.dump().size());
    options_.push_back({made({{"type", "object"},
                              {"required", Json::Array{Json(name)}},
                              {"properties", Object{{name, Object{{"not", schema}}}}}})});
  }
}

}  // namespace troupe::engine::constraints

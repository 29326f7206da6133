#include "engine/constraints/json_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

#include "engine/base/text.h"
#include "engine/constraints/exclusive_options.h"
#include "engine/constraints/json_rules.h"
#include "engine/constraints/json_schema_types.h"
#include "engine/constraints/member_index.h"
#include "engine/constraints/regex.h"
#include "engine/constraints/repetition.h"

namespace troupe::engine::constraints {

using Node = Grammar::Node;
using Rule = Grammar::Rule;

namespace {

/// Whether $schema is a draft in which $ref has no siblings.
bool is_before_2019(const Json& root) {
  const Json* draft = root.find("$schema");
  return draft != nullptr && draft->is_string() &&
         draft->string().find("json-schema.org/draft-0") != std::string::npos;
}

constexpr std::size_t max_options = 1'000;

class SchemaCompiler {
 public:
  SchemaCompiler(Grammar& grammar, const Json& root, std::vector<std::string>& ignored)
      : grammar_(grammar), rules_(grammar), root_(root), ignored_(ignored) {}

  Rule compile(const Json& schema, const SchemaPath& where, int depth);

 private:
  struct Place {
    const Json& schema;
    const SchemaPath& where;
    int depth;
  };

  Rule reference(const Place& place, const std::string& pointer);
  Rule alternatives(const Place& place, std::string_view keyword);
  Rule constants(const Place& place, const Json::Array& values);
  Rule of_types(const Place& place);
  Rule of_type(const Place& place, JsonType type);
  Rule string(const Place& place);
  Rule array(const Place& place);
  Rule object(const Place& place);
  Rule map(const Place& place, const Json& values);
  Node add_members(const Place& place, std::span<const Property> properties, Node from);
  std::vector<const Json*> targets_of(const Place& place, const Json::Array& options);
  const Json& at_pointer(const SchemaPath& where, const std::string& pointer);

  Grammar& grammar_;
  JsonRules rules_;
  const Json& root_;
  std::vector<std::string>& ignored_;
  MemberIndex members_;
  std::map<std::string, Rule> references_;
};

Rule SchemaCompiler::compile(const Json& schema, const SchemaPath& where, int depth) {
  if (depth > max_nesting) schema_mistake(where, cat("nested deeper than ", max_nesting));
  if (schema.is_bool()) return schema.boolean() ? rules_.value() : grammar_.add_rule();
  if (!schema.is_object())
    schema_mistake(where, cat("expected an object or a boolean, found ", schema.type_name()));
  check_keywords(schema, where, ignored_);
  const Place place{schema, where, depth};
  if (const Json* pointer = schema.find("$ref")) {
    if (!pointer->is_string()) schema_mistake(where, "$ref: expected a string");
    if (!is_before_2019(root_)) check_alone(schema, "$ref", where);
    return reference(place, pointer->string());
  }
  if (const Json* value = schema.find("const")) return constants(place, {*value});
  if (const Json* values = schema.find("enum")) {
    if (!values->is_array() || values->array().empty())
      schema_mistake(where, "enum: expected a list of at least one value");
    return constants(place, values->array());
  }
  for (const char* keyword : {"anyOf", "oneOf", "allOf"})
    if (schema.find(keyword) != nullptr) return alternatives(place, keyword);
  return of_types(place);
}

Rule SchemaCompiler::reference(const Place& place, const std::string& pointer) {
  if (const auto found = references_.find(pointer); found != references_.end())
    return found->second;
  const Json& target = at_pointer(place.where, pointer);
  // Known before its target is read, which may refer to it again.
  const Rule rule = grammar_.add_rule();
  references_.emplace(pointer, rule);
  const Rule found = compile(target, SchemaPath(pointer), place.depth + 1);
  grammar_.add_empty(grammar_.call(grammar_.begin(rule), found), grammar_.end(rule));
  return rule;
}

const Json& SchemaCompiler::at_pointer(const SchemaPath& where, const std::string& pointer) {
  if (!pointer.starts_with("#"))
    schema_unsupported(
        where, cat("$ref: only references within the schema (\"#/...\") are supported, ", "found ",
                   quote(pointer)));
  const Json* at = &root_;
  for (std::size_t begin = 1; begin < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', begin + 1), pointer.size());
    const std::string key = unescaped_pointer(pointer.substr(begin + 1, end - begin - 1));
    const Json* next = pointer[begin] == '/' ? members_.find(*at, key) : nullptr;
    if (next == nullptr)
      schema_mistake(where, cat("$ref: there is no ", quote(pointer), " in the schema"));
    at = next;
    begin = end;
  }
  return *at;
}

Rule SchemaCompiler::alternatives(const Place& place, std::string_view keyword) {
  const auto& [schema, where, depth] = place;
  const Json& list = *schema.find(keyword);
  if (!list.is_array() || list.array().empty())
    schema_mistake(where, cat(keyword, ": expected a list of at least one schema"));
  if (list.array().size() > max_options)
    schema_unsupported(where, cat(keyword, ": ", list.array().size(), " options; at most ",
                                  max_options, " are supported; use enum for constants"));
  check_alone(schema, keyword, where);
  if (keyword == "allOf" && list.array().size() > 1)
    schema_unsupported(where, "allOf of several schemas is not supported; merge them");
  if (keyword == "oneOf") check_exclusive(targets_of(place, list.array()), where, grammar_);
  const Rule rule = grammar_.add_rule();
  std::size_t index = 0;
  for (const Json& each : list.array()) {
    const Rule option = compile(each, SchemaPath(where, keyword, index++), depth + 1);
    grammar_.add_empty(grammar_.call(grammar_.begin(rule), option), grammar_.end(rule));
  }
  return rule;
}

/// Integers of more than 64 bits have been read as the next number, which is another value.
void check_kept(const Json& value, const SchemaPath& where) {
  constexpr double bound = 9223372036854775808.0;  // 2^63
  if (value.is_array())
    for (const Json& each : value.array()) check_kept(each, where);
  if (value.is_object())
    for (const auto& [name, member] : value.object()) check_kept(member, where);
  if (value.is_number() && !value.is_integer() && std::abs(value.number()) >= bound)
    schema_unsupported(where, cat("the constant ", value.dump(),
                                  " is not kept exactly: integers have at most 64 bits"));
}

Rule SchemaCompiler::constants(const Place& place, const Json::Array& values) {
  check_alone(place.schema, place.schema.find("const") != nullptr ? "const" : "enum", place.where);
  const auto types = types_of(place.schema, place.where);
  std::vector<std::string> texts;
  for (const Json& value : values) check_kept(value, place.where);
  for (const Json& value : values)
    if (types.empty() || has_type(value, types)) texts.push_back(value.dump());
  const Rule rule = grammar_.add_rule();
  grammar_.add_empty(grammar_.texts(grammar_.begin(rule), std::move(texts)), grammar_.end(rule));
  return rule;
}

Rule SchemaCompiler::of_types(const Place& place) {
  JsonTypes given = types_of(place.schema, place.where);
  if (given.empty()) given = implied_types(place.schema);
  const std::vector<JsonType> types = given.list();
  if (types.empty()) return rules_.value();
  if (types.size() == 1) return of_type(place, types[0]);
  const Rule rule = grammar_.add_rule();
  for (const JsonType type : types) {
    const Rule option = of_type(place, type);
    grammar_.add_empty(grammar_.call(grammar_.begin(rule), option), grammar_.end(rule));
  }
  return rule;
}

Rule SchemaCompiler::of_type(const Place& place, JsonType type) {
  switch (type) {
    case JsonType::null:
      return rules_.literal("null");
    case JsonType::boolean: {
      const Rule rule = grammar_.add_rule();
      for (const char* each : {"true", "false"})
        grammar_.add_empty(grammar_.text(grammar_.begin(rule), each), grammar_.end(rule));
      return rule;
    }
    case JsonType::integer:
      return rules_.integer(bounds_of(place.schema, place.where));
    case JsonType::number: {
      const NumberBounds bounds = bounds_of(place.schema, place.where);
      return bounds.any() ? rules_.bounded_number(bounds) : rules_.number();
    }
    case JsonType::string:
      return string(place);
    case JsonType::array:
      return array(place);
    case JsonType::object:
      return object(place);
  }
  return 0;
}

Rule SchemaCompiler::string(const Place& place) {
  const auto& [schema, where, depth] = place;
  const Counts length = counts_of(schema, "minLength", "maxLength", where);
  const std::string pattern = string_pattern(schema, where);
  if (pattern.empty() && !length.given && schema.find("pattern") == nullptr) return rules_.string();
  if (length.given && schema.find("pattern") != nullptr)
    schema_unsupported(where,
                       "pattern with minLength or maxLength is not supported; put the lengths "
                       "into the pattern");
  const Rule rule = grammar_.add_rule();
  Node at = grammar_.text(grammar_.begin(rule), "\"");
  if (length.given)
    at = add_repeated(grammar_, at, rules_.character(), length.counts);
  else
    at = add_regex(grammar_, at, pattern, TextForm::json);
  grammar_.add_empty(grammar_.text(at, "\""), grammar_.end(rule));
  return rule;
}

Rule SchemaCompiler::array(const Place& place) {
  const auto& [schema, where, depth] = place;
  const auto [given, counts] = counts_of(schema, "minItems", "maxItems", where);
  std::vector<Rule> first;
  if (const Json* prefix = schema.find("prefixItems")) {
    if (!prefix->is_array()) schema_mistake(where, "prefixItems: expected a list of schemas");
    for (const Json& each : prefix->array())
      first.push_back(compile(each, SchemaPath(where, "prefixItems", first.size()), depth + 1));
  }
  const Json* items = schema.find("items");
  const Rule item = items ? compile(*items, SchemaPath(where, "items"), depth + 1) : rules_.value();
  const Rule rule = grammar_.add_rule();
  const Node end = grammar_.add_node();
  Node at = grammar_.text(grammar_.begin(rule), "[");
  int read = 0;  // elements before `at`
  for (; read < counts.most.value_or(std::ssize(first) + 1); ++read) {
    if (read > 0 && read >= std::ssize(first)) break;
    if (read >= counts.least) grammar_.add_empty(at, end);
    const Node before = read == 0 ? at : grammar_.call(at, rules_.comma());
    at = grammar_.call(before,
                       read < std::ssize(first) ? first[static_cast<std::size_t>(read)] : item);
  }
  Repetitions more{std::max(counts.least - read, 0), counts.most};
  if (more.most) *more.most -= read;
  const Rule next = grammar_.add_rule();
  grammar_.add_empty(grammar_.call(grammar_.call(grammar_.begin(next), rules_.comma()), item),
                     grammar_.end(next));
  grammar_.add_empty(add_repeated(grammar_, at, next, more), end);
  grammar_.add_empty(grammar_.text(end, "]"), grammar_.end(rule));
  return rule;
}

/// The options of oneOf, without their references.
std::vector<const Json*> SchemaCompiler::targets_of(const Place& place,
                                                    const Json::Array& options) {
  std::vector<const Json*> targets;
  for (const Json& each : options) {
    const Json* target = &each;
    for (int hops = 0; hops < max_nesting && target->find("$ref") != nullptr; ++hops) {
      const Json& pointer = *target->find("$ref");
      if (!pointer.is_string()) schema_mistake(place.where, "$ref: expected a string");
      target = &at_pointer(place.where, pointer.string());
    }
    targets.push_back(target);
  }
  return targets;
}

Rule SchemaCompiler::object(const Place& place) {
  const auto& [schema, where, depth] = place;
  const std::vector<Property> properties = properties_of(schema, where);
  const Json* others = schema.find("additionalProperties");
  const Counts members = counts_of(schema, "minProperties", "maxProperties", where);
  if (properties.empty() && others != nullptr && !(*others == Json(false)))
    return map(place, *others);
  if (properties.empty() && others == nullptr && schema.find("properties") == nullptr)
    return map(place, Json(true));
  if (members.given)
    schema_unsupported(where,
                       "minProperties and maxProperties are supported only without properties");
  const Rule rule = grammar_.add_rule();
  const Node end = add_members(place, properties, grammar_.text(grammar_.begin(rule), "{"));
  grammar_.add_empty(grammar_.text(end, "}"), grammar_.end(rule));
  return rule;
}

/// Any names; they may repeat, and the last member counts.
Rule SchemaCompiler::map(const Place& place, const Json& values) {
  const auto counts = counts_of(place.schema, "minProperties", "maxProperties", place.where).counts;
  if (counts.least > 1)
    schema_unsupported(place.where, "minProperties above 1 is not supported: names may repeat");
  const Rule value =
      compile(values, SchemaPath(place.where, "additionalProperties"), place.depth + 1);
  const Rule member = rules_.pair(value), rule = grammar_.add_rule();
  const Node first = grammar_.text(grammar_.begin(rule), "{"), end = grammar_.add_node();
  if (counts.least == 0) grammar_.add_empty(first, end);
  if (counts.most.value_or(1) > 0) {
    const Rule next = grammar_.add_rule();
    grammar_.add_empty(grammar_.call(grammar_.call(grammar_.begin(next), rules_.comma()), member),
                       grammar_.end(next));
    Repetitions more{0, counts.most};
    if (more.most) --*more.most;
    grammar_.add_empty(add_repeated(grammar_, grammar_.call(first, member), next, more), end);
  }
  grammar_.add_empty(grammar_.text(end, "}"), grammar_.end(rule));
  return rule;
}

/// The members in their order; optional ones may be left out. Two chains of nodes: without a member
/// so far, and behind one, where a comma is needed.
Node SchemaCompiler::add_members(const Place& place, std::span<const Property> properties,
                                 Node from) {
  Node none = from, some = grammar_.add_node();
  for (const auto& [name, schema, required] : properties) {
    const Rule value =
        schema == nullptr
            ? rules_.value()
            : compile(*schema, SchemaPath(place.where, "properties", name), place.depth + 1);
    const Rule member = grammar_.add_rule();
    const Node key = grammar_.text(grammar_.begin(member), Json(name).dump());
    grammar_.add_empty(grammar_.call(grammar_.call(key, rules_.colon()), value),
                       grammar_.end(member));
    const Node next_none = grammar_.add_node(), next_some = grammar_.add_node();
    grammar_.add_empty(grammar_.call(none, member), next_some);
    grammar_.add_empty(grammar_.call(grammar_.call(some, rules_.comma()), member), next_some);
    if (!required) {
      grammar_.add_empty(none, next_none);
      grammar_.add_empty(some, next_some);
    }
    none = next_none;
    some = next_some;
  }
  const Node end = grammar_.add_node();
  grammar_.add_empty(none, end);
  grammar_.add_empty(some, end);
  return end;
}

}  // namespace

Grammar::Rule add_json_schema(Grammar& grammar, const Json& schema,
                              std::vector<std::string>& ignored) {
  return SchemaCompiler(grammar, schema, ignored).compile(schema, SchemaPath("#"), 0);
}

}  // namespace troupe::engine::constraints

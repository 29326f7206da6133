#include "engine/constraints/conjunction.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/text/text.h"
#include "engine/constraints/negation.h"

namespace troupe::engine::constraints {

namespace {

constexpr std::size_t max_atoms = 1'000'000;

std::uintptr_t key_of(const Atom& atom) {
  return reinterpret_cast<std::uintptr_t>(atom.schema) * 2 + (atom.negated ? 1 : 0);
}

/// Integers of more than 64 bits have been read as the next double, which is another value; their
/// digits are not kept.
void check_kept(const Json& value, const SchemaPath& where) {
  constexpr double bound = 9223372036854775808.0;  // 2^63
  if (value.is_array())
    for (const Json& each : value.array()) check_kept(each, where);
  if (value.is_object())
    for (const auto& [name, member] : value.object()) check_kept(member, where);
  if (value.is_number() && !value.is_integer() && std::abs(value.number()) >= bound)
    schema_unsupported(where, "a constant beyond 64 bits is not supported");
}

void check_constants(const Atom& atom) {
  for (const char* keyword : {"const", "enum"})
    if (const Json* value = atom.schema->find(keyword)) check_kept(*value, *atom.where);
}

}  // namespace

Atom* Conjunctions::atom(const Json& schema, const SchemaPath& where, const Atom* parent) {
  grammar_.spend(4);
  if (atoms_.size() >= max_atoms)
    throw Failure(Error{Errc::full, "the JSON schema has too many combinations; simplify it"});
  const int level = parent == nullptr ? 0 : parent->level + 1;
  if (level > max_nesting) schema_mistake(where, cat("nested deeper than ", max_nesting));
  atoms_.push_back({&schema, &where, parent, false, parent != nullptr && parent->silent, level});
  return &atoms_.back();
}

Atom* Conjunctions::negation(const Atom& of) {
  Atom* out = atom(*of.schema, *of.where, &of);
  out->negated = !of.negated;
  out->silent = true;
  return out;
}

const Json& Conjunctions::made(Json schema) {
  grammar_.spend(8);
  return made_.emplace_back(std::move(schema));
}

Atom* Conjunctions::part(const Atom& parent, const Json& schema, std::string_view keyword) {
  return atom(schema, path(parent, keyword), &parent);
}

Atom* Conjunctions::made_part(const Atom& parent, Json schema, std::string_view keyword) {
  return part(parent, made(std::move(schema)), keyword);
}

const Json::Array& schemas_of(const Atom& atom, std::string_view keyword) {
  const Json& list = *atom.schema->find(keyword);
  if (!list.is_array() || list.array().empty())
    schema_mistake(*atom.where, cat(keyword, ": expected a list of at least one schema"));
  return list.array();
}

Conjunction Conjunctions::of(const Atoms& atoms) {
  Conjunction out;
  for (const Atom* each : atoms) add(out, *each);
  return out;
}

void Conjunctions::add(Conjunction& into, const Atom& atom) {
  if (into.impossible) return;
  if (!atom.schema->is_bool() && !atom.schema->is_object())
    schema_mistake(*atom.where,
                   cat("expected an object or a boolean, found ", atom.schema->type_name()));
  for (const Atom* above = atom.parent; above != nullptr; above = above->parent) {
    grammar_.spend(1);
    if (above->schema == atom.schema && above->negated == atom.negated) {
      into.impossible = true;  // a reference that leads to itself
      return;
    }
  }
  if (!into.seen.insert(key_of(atom)).second) return;
  if (atom.schema->is_bool()) {
    if (atom.schema->boolean() == atom.negated) into.impossible = true;
    return;
  }
  check_keywords(*atom.schema, *atom.where, notes_);
  grammar_.spend(1 + atom.schema->object().size());
  if (atom.negated)
    add_negation(into, atom);
  else
    add_schema(into, atom);
}

void Conjunctions::add_schema(Conjunction& into, const Atom& atom) {
  if (const Json* reference = atom.schema->find("$ref")) {
    if (!reference->is_string()) schema_mistake(*atom.where, "$ref: expected a string");
    const Json& target = source_.find(*atom.schema, reference->string(), *atom.where);
    const SchemaPath& where = path(reference->string());
    add(into, *this->atom(target, where, &atom));
    if (source_.references_stand_alone()) return;
  }
  restrict_types(into, atom);
  into.atoms.push_back(&atom);
  add_applicators(into, atom);
}

void Conjunctions::add_applicators(Conjunction& into, const Atom& atom) {
  const Json& schema = *atom.schema;
  if (schema.find("allOf") != nullptr) {
    std::size_t index = 0;
    for (const Json& each : schemas_of(atom, "allOf"))
      add(into, *this->atom(each, path(atom, "allOf", index++), &atom));
  }
  if (const Json* denied = schema.find("not")) {
    Atom* child = part(atom, *denied, "not");
    child->negated = child->silent = true;
    add(into, *child);
  }
  if (schema.find("anyOf") != nullptr) add_list(into, atom, "anyOf", false);
  if (schema.find("oneOf") != nullptr) add_list(into, atom, "oneOf", true);
  if (schema.find("if") != nullptr) add_condition(into, atom);
  for (const char* keyword : {"dependencies", "dependentRequired", "dependentSchemas"})
    if (schema.find(keyword) != nullptr) add_dependencies(into, atom, keyword);
}

void Conjunctions::add_list(Conjunction& into, const Atom& atom, std::string_view keyword,
                            bool exclusive) {
  const Json::Array& list = schemas_of(atom, keyword);
  if (list.size() > max_options)
    schema_unsupported(*atom.where, cat(keyword, ": ", list.size(), " options; at most ",
                                        max_options, " are supported; use enum for constants"));
  Choice choice{.options = {}, .exclusive = exclusive && list.size() > 1, .where = atom.where};
  for (const Json& each : list)
    choice.options.push_back({this->atom(each, path(atom, keyword, choice.options.size()), &atom)});
  if (choice.options.size() == 1) return add(into, *choice.options[0][0]);
  into.choices.push_back(std::move(choice));
}

/// `if`: what satisfies it satisfies `then`, and what does not, `else`.
void Conjunctions::add_condition(Conjunction& into, const Atom& atom) {
  const Json& schema = *atom.schema;
  const Json* then = schema.find("then");
  const Json* otherwise = schema.find("else");
  if (then == nullptr && otherwise == nullptr) return;
  const Atom* condition = part(atom, *schema.find("if"), "if");
  Atoms met = {condition}, unmet = {negation(*condition)};
  if (then != nullptr) met.push_back(part(atom, *then, "then"));
  if (otherwise != nullptr) unmet.push_back(part(atom, *otherwise, "else"));
  into.choices.push_back(
      {.options = {std::move(met), std::move(unmet)}, .exclusive = false, .where = atom.where});
}

void Conjunctions::add_dependencies(Conjunction& into, const Atom& atom, std::string_view keyword) {
  const Json& all = *atom.schema->find(keyword);
  if (!all.is_object()) schema_mistake(*atom.where, cat(keyword, ": expected an object"));
  for (const auto& [name, needed] : all.object()) {
    Json::Array names = {Json(name)};
    if (needed.is_array()) names.insert(names.end(), needed.array().begin(), needed.array().end());
    if (needed.is_string()) names.push_back(needed);  // of draft 3
    Atom* absent =
        made_part(atom, Json::Object{{"properties", Json::Object{{name, false}}}}, keyword);
    absent->silent = true;
    Atoms present = {made_part(atom, Json::Object{{"required", std::move(names)}}, keyword)};
    if (!needed.is_array() && !needed.is_string())
      present.push_back(this->atom(needed, path(atom, keyword, std::string_view(name)), &atom));
    into.choices.push_back(
        {.options = {{absent}, std::move(present)}, .exclusive = false, .where = atom.where});
  }
}

void Conjunctions::add_negation(Conjunction& into, const Atom& atom) {
  if (is_plain_negation(*atom.schema)) {
    restrict_types(into, atom);
    into.atoms.push_back(&atom);
    return;
  }
  std::vector<Atoms> options = Negation(*this, source_, atom).options();
  if (options.size() > 1) {
    into.choices.push_back(
        {.options = std::move(options), .exclusive = false, .where = atom.where});
    return;
  }
  if (options.empty()) into.impossible = true;
  for (const Atoms& option : options)
    for (const Atom* each : option) add(into, *each);
}

void Conjunctions::restrict_types(Conjunction& into, const Atom& atom) {
  JsonTypes types = types_of(*atom.schema, *atom.where);
  check_constants(atom);
  if (atom.negated) {
    if (types.empty()) return;
    into.types.remove(types);
    into.typed = true;
  } else {
    const Json* value = atom.schema->find("const");
    const Json* values = atom.schema->find("enum");
    if (values != nullptr && (!values->is_array() || values->array().empty()))
      schema_mistake(*atom.where, "enum: expected a list of at least one value");
    JsonTypes of_values;
    if (value != nullptr) {
      of_values.add(json_type_of(*value));
    } else if (values != nullptr) {
      grammar_.spend(values->array().size());
      for (const Json& each : values->array()) of_values.add(json_type_of(each));
    }
    for (JsonTypes given : {types, of_values}) {
      if (given.empty()) continue;
      if (given.has(JsonType::number)) given.add(JsonType::integer);
      if (given == of_values && given.has(JsonType::integer)) given.add(JsonType::number);
      into.types.keep(given);
      into.typed = true;
    }
  }
  if (into.types.empty()) into.impossible = true;
}

}  // namespace troupe::engine::constraints

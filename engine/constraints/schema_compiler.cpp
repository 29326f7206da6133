#include "engine/constraints/schema_compiler.h"

#include <algorithm>
#include <array>

#include "engine/base/text/text.h"
#include "engine/constraints/exclusive_options.h"

namespace troupe::engine::constraints {

namespace {

/// Options whose pairs are compared.
constexpr std::size_t max_compared_options = 32;
constexpr int max_effort = 4;

}  // namespace

SchemaCompiler::SchemaCompiler(Grammar& grammar, const Json& root, std::vector<std::string>& notes)
    : grammar_(grammar),
      rules_(grammar),
      source_(grammar, root),
      conjunctions_(grammar, source_, notes),
      patterns_(grammar.work()),
      check_(grammar, source_, patterns_) {
}

bool is_part_of(const Atom& atom, const Atom& whole) {
  for (const Atom* at = &atom; at != nullptr; at = at->parent)
    if (at == &whole) return true;
  return false;
}

Grammar::Rule SchemaCompiler::compile(Atoms atoms, int depth) {
  std::vector<std::uintptr_t> key;
  for (const Atom* atom : atoms)
    key.push_back(reinterpret_cast<std::uintptr_t>(atom->schema) * 2 + (atom->negated ? 1 : 0));
  std::ranges::sort(key);
  key.erase(std::unique(key.begin(), key.end()), key.end());
  grammar_.spend(1 + 2 * key.size());
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  if (depth > max_nesting)
    schema_mistake(*atoms.front()->where, cat("nested deeper than ", max_nesting));
  // Known before its parts are read, which may refer to it again.
  const Rule rule = grammar_.add_rule();
  made_.emplace(std::move(key), rule);
  Branches branches{rule, depth};
  add_branches(conjunctions_.of(atoms), branches, 0);
  return rule;
}

void SchemaCompiler::add_branches(const Conjunction& all, Branches& into, int taken) {
  if (all.impossible) return;
  if (all.choices.empty()) {
    if (++into.leaves > max_options)
      schema_unsupported(*all.atoms.front()->where,
                         cat("its alternatives have more than ", max_options, " combinations"));
    return add_leaf({all, into.depth}, into.rule);
  }
  constexpr int max_choices = 64;
  const Choice& choice = all.choices.back();
  if (taken >= max_choices)
    schema_unsupported(*choice.where,
                       cat("more than ", max_choices, " keywords with alternatives"));
  const auto options = choice.exclusive ? exclusive_options(all, choice) : choice.options;
  for (const Atoms& option : options) {
    grammar_.spend(8 + all.atoms.size() + all.seen.size());
    Conjunction more = all;
    more.choices.pop_back();
    for (const Atom* atom : option) conjunctions_.add(more, *atom);
    add_branches(more, into, taken + 1);
  }
}

Json::Array SchemaCompiler::satisfying(const Conjunction& all, std::span<const Json> values) {
  Json::Array out;
  for (const Json& value : values)
    if (std::ranges::all_of(all.atoms,
                            [&](const Atom* atom) { return check_.satisfies(value, *atom); }))
      out.push_back(value);
  return out;
}

std::optional<Json::Array> SchemaCompiler::constants_of(const Conjunction& all) {
  std::optional<std::span<const Json>> fewest;
  for (const Atom* atom : all.atoms) {
    if (atom->negated) continue;
    std::span<const Json> own;
    if (const Json* value = atom->schema->find("const"))
      own = {value, 1};
    else if (const Json* values = atom->schema->find("enum"))
      own = values->array();
    if (!own.empty() && (!fewest || own.size() < fewest->size())) fewest = own;
  }
  if (!fewest) return std::nullopt;
  return satisfying(all, *fewest);
}

JsonTypes SchemaCompiler::types_to_write(const Conjunction& all) const {
  if (all.typed) return all.types;
  JsonTypes implied;
  for (const Atom* atom : all.atoms) {
    if (atom->negated) continue;
    for (const JsonType type : implied_types(*atom->schema).list()) implied.add(type);
  }
  if (implied.has(JsonType::number)) implied.add(JsonType::integer);
  return implied.empty() ? all.types : implied;
}

void SchemaCompiler::add_leaf(const Leaf& leaf, Rule into) {
  const auto add = [&](Rule rule) {
    grammar_.add_empty(grammar_.call(grammar_.begin(into), rule), grammar_.end(into));
  };
  if (const auto values = constants_of(leaf.all)) {
    std::vector<std::string> texts;
    for (const Json& value : *values) texts.push_back(value.dump());
    grammar_.add_empty(grammar_.texts(grammar_.begin(into), std::move(texts)), grammar_.end(into));
    return;
  }
  const JsonTypes types = types_to_write(leaf.all);
  const bool negated =
      std::ranges::any_of(leaf.all.atoms, [](const Atom* atom) { return atom->negated; });
  if (types == JsonTypes::all() && !negated) return add(rules_.value());
  for (const JsonType type : types.list()) {
    if (type == JsonType::integer && types.has(JsonType::number)) continue;
    if (type == JsonType::number)
      add(number(leaf, types.has(JsonType::integer), true));
    else
      add(of_type(leaf, type));
  }
}

Grammar::Rule SchemaCompiler::of_type(const Leaf& leaf, JsonType type) {
  switch (type) {
    case JsonType::null:
    case JsonType::boolean: {
      const std::array<Json, 1> null = {Json()};
      const std::array<Json, 2> booleans = {Json(true), Json(false)};
      const Rule rule = grammar_.add_rule();
      for (const Json& value :
           type == JsonType::null ? satisfying(leaf.all, null) : satisfying(leaf.all, booleans))
        grammar_.add_empty(grammar_.text(grammar_.begin(rule), value.dump()), grammar_.end(rule));
      return rule;
    }
    case JsonType::string:
      return string(leaf);
    case JsonType::array:
      return array(leaf);
    case JsonType::object:
      return object(leaf);
    default:
      return number(leaf, true, false);
  }
}

Grammar::Rule SchemaCompiler::number(const Leaf& leaf, bool integers, bool fractions) {
  NumberBounds bounds;
  for (const Atom* atom : leaf.all.atoms)
    if (!atom->negated) narrow_bounds(bounds, *atom->schema, *atom->where);
  bounds.no_integer = !integers;
  if (!fractions) return rules_.integer(bounds);
  return bounds.any() ? rules_.bounded_number(bounds) : rules_.number();
}

/// An option without its references.
const Json* SchemaCompiler::target_of(const Json& option, const SchemaPath& where) {
  const Json* target = &option;
  for (int hops = 0; hops < max_nesting && target->find("$ref") != nullptr; ++hops) {
    const Json& pointer = *target->find("$ref");
    if (!pointer.is_string()) schema_mistake(where, "$ref: expected a string");
    target = &source_.find(*target, pointer.string(), where);
  }
  return target;
}

/// The options, each with the negations of those that it does not exclude by itself.
std::vector<Atoms> SchemaCompiler::exclusive_options(const Conjunction& all, const Choice& choice) {
  std::vector<const Json*> targets;
  for (const Atoms& option : choice.options)
    targets.push_back(target_of(*option[0]->schema, *choice.where));
  const auto overlap = find_overlap(targets, grammar_);
  if (!overlap) return choice.options;
  if (choice.options.size() > max_compared_options) refuse_overlap(*overlap, *choice.where);
  std::vector<Atoms> out = choice.options;
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t j = i + 1; j < out.size(); ++j) {
      grammar_.spend(8 + all.atoms.size() + all.seen.size());
      Conjunction both = all;
      both.choices.clear();
      conjunctions_.add(both, *choice.options[i][0]);
      conjunctions_.add(both, *choice.options[j][0]);
      if (is_impossible(both, max_effort)) continue;
      out[i].push_back(conjunctions_.negation(*choice.options[j][0]));
      out[j].push_back(conjunctions_.negation(*choice.options[i][0]));
    }
  }
  return out;
}

/// Whether no object satisfies the conjunction because of a member that it requires.
bool SchemaCompiler::lacks_member(const Conjunction& all, int effort) {
  std::vector<std::string_view> names;
  for (const Atom* atom : all.atoms) {
    const Json* required = atom->negated ? nullptr : atom->schema->find("required");
    if (required == nullptr || !required->is_array()) continue;
    for (const Json& name : required->array())
      if (name.is_string()) names.push_back(name.string());
  }
  return std::ranges::any_of(names, [&](std::string_view name) {
    return is_impossible(conjunctions_.of(value_of(all, name)), effort - 1);
  });
}

/// Whether it is certain that no value satisfies the conjunction, by the types, constants, bounds
/// and members of it.
bool SchemaCompiler::is_impossible(const Conjunction& all, int effort) {
  grammar_.spend(4 + all.atoms.size());
  if (all.impossible) return true;
  if (const auto values = constants_of(all); values && values->empty()) return true;
  if (effort <= 0) return false;
  const std::vector<JsonType> types = all.types.list();
  const auto only = [&](JsonType a, JsonType b) {
    return std::ranges::all_of(types, [&](JsonType type) { return type == a || type == b; });
  };
  if (only(JsonType::object, JsonType::object) && lacks_member(all, effort)) return true;
  if (only(JsonType::integer, JsonType::number)) {
    NumberBounds bounds;
    for (const Atom* atom : all.atoms)
      if (!atom->negated) narrow_bounds(bounds, *atom->schema, *atom->where);
    if (bounds.low && bounds.high &&
        (*bounds.low > *bounds.high ||
         (*bounds.low == *bounds.high && (bounds.low_open || bounds.high_open))))
      return true;
  }
  constexpr std::size_t max_tried = 16;
  return std::ranges::any_of(all.choices, [&](const Choice& choice) {
    if (choice.options.size() > max_tried) return false;
    return std::ranges::all_of(choice.options, [&](const Atoms& option) {
      Conjunction more = all;
      more.choices.clear();
      for (const Atom* atom : option) conjunctions_.add(more, *atom);
      return is_impossible(more, effort - 1);
    });
  });
}

}  // namespace troupe::engine::constraints

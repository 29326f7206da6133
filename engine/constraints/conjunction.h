// Conjunctions: sets of schemas that one value must satisfy together. `$ref` and `allOf` are
// expanded; `anyOf`, `oneOf`, `if` and others are choices between further schemas (as in the method
// of analytic tableaux).
#pragma once

#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/constraints/grammar.h"
#include "engine/constraints/json_schema_types.h"
#include "engine/constraints/schema_path.h"
#include "engine/constraints/schema_source.h"

namespace troupe::engine::constraints {

/// A schema, or its negation, that a value must satisfy.
struct Atom {
  const Json* schema = nullptr;
  const SchemaPath* where = nullptr;
  const Atom* parent = nullptr;  ///< of which it is a part that holds for the same value
  bool negated = false;
  /// Of a negation: it evaluates no member in the sense of unevaluatedProperties.
  bool silent = false;
  int level = 0;  ///< of parents
};

/// Schemas of which a value must satisfy all.
using Atoms = std::vector<const Atom*>;

struct Choice {
  std::vector<Atoms> options;
  /// An instance must satisfy exactly one option, each of which is one atom.
  bool exclusive = false;
  const SchemaPath* where = nullptr;
};

struct Conjunction {
  Atoms atoms;  ///< expanded; negated ones have only the keywords of is_negated_here()
  std::vector<Choice> choices;
  /// The types that are left. `number` means numbers that are no integers, where `integer` is
  /// missing.
  JsonTypes types = JsonTypes::all();
  bool typed = false;       ///< something restricts the types
  bool impossible = false;  ///< no value satisfies it
  std::unordered_set<std::uintptr_t> seen;
};

/// The list of at least one schema that `atom` has as `keyword`.
const Json::Array& schemas_of(const Atom& atom, std::string_view keyword);

class Conjunctions {
 public:
  /// `grammar`: charged. `notes`: of check_keywords().
  Conjunctions(const Grammar& grammar, SchemaSource& source, std::vector<std::string>& notes)
      : grammar_(grammar), source_(source), notes_(notes) {}

  /// A schema of the value at a place; `parent`: see Atom.
  Atom* atom(const Json& schema, const SchemaPath& where, const Atom* parent = nullptr);
  /// What must not hold. Throws Failure (Errc::unsupported) where it is expanded and cannot be
  /// expressed.
  Atom* negation(const Atom& of);
  const SchemaPath& path(const Atom& atom, std::string_view keyword) {
    return paths_.emplace_back(*atom.where, keyword);
  }
  template <class Name>
  const SchemaPath& path(const Atom& atom, std::string_view keyword, Name name) {
    return paths_.emplace_back(*atom.where, keyword, name);
  }

  const SchemaPath& path(std::string_view reference) {
    return paths_.emplace_back(SchemaPath(reference));
  }
  void spend(std::size_t units) const { grammar_.spend(units); }

  Conjunction of(const Atoms& atoms);
  void add(Conjunction& into, const Atom& atom);
  /// A schema that no user wrote, which lives as long as this.
  const Json& made(Json schema);

 private:
  void add_schema(Conjunction& into, const Atom& atom);
  void add_applicators(Conjunction& into, const Atom& atom);
  void add_list(Conjunction& into, const Atom& atom, std::string_view keyword, bool exclusive);
  void add_condition(Conjunction& into, const Atom& atom);
  void add_dependencies(Conjunction& into, const Atom& atom, std::string_view keyword);
  void add_negation(Conjunction& into, const Atom& atom);
  void restrict_types(Conjunction& into, const Atom& atom);
  Atom* part(const Atom& parent, const Json& schema, std::string_view keyword);
  Atom* made_part(const Atom& parent, Json schema, std::string_view keyword);

  const Grammar& grammar_;
  SchemaSource& source_;
  std::vector<std::string>& notes_;
  std::deque<Atom> atoms_;
  std::deque<SchemaPath> paths_;
  std::deque<Json> made_;
};

}  // namespace troupe::engine::constraints

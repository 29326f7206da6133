// SchemaCompiler: rules for conjunctions of schemas, of which json_schema.h has the first.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/constraints/conjunction.h"
#include "engine/constraints/instance_check.h"
#include "engine/constraints/json_rules.h"
#include "engine/constraints/member_index.h"
#include "engine/constraints/pattern_cache.h"
#include "engine/constraints/schema_source.h"
#include "engine/constraints/text_set.h"

namespace troupe::engine::constraints {

class SchemaCompiler {
 public:
  SchemaCompiler(Grammar& grammar, const Json& root, std::vector<std::string>& notes);

  /// A rule for the values that satisfy all of the atoms; equal sets of atoms have one rule.
  Grammar::Rule compile(Atoms atoms, int depth);
  Grammar::Rule compile(const Json& schema, const SchemaPath& where) {
    return compile({conjunctions_.atom(schema, where)}, 0);
  }

 private:
  using Node = Grammar::Node;
  using Rule = Grammar::Rule;
  /// What stands where a rule begins: the texts of one expanded conjunction.
  struct Leaf {
    const Conjunction& all;
    int depth;
    const SchemaPath& where() const { return *all.atoms.front()->where; }
  };
  struct Branches {
    Rule rule;
    int depth;
    std::size_t leaves = 0;
  };

  void add_branches(const Conjunction& all, Branches& into, int taken);
  void add_leaf(const Leaf& leaf, Rule into);
  Rule of_type(const Leaf& leaf, JsonType type);
  Rule number(const Leaf& leaf, bool integers, bool fractions);
  /// The values that satisfy the conjunction but for its choices, if it names its constants.
  std::optional<Json::Array> constants_of(const Conjunction& all);
  Json::Array satisfying(const Conjunction& all, std::span<const Json> values);
  JsonTypes types_to_write(const Conjunction& all) const;

  // Options of oneOf, of which an instance satisfies exactly one.
  std::vector<Atoms> exclusive_options(const Conjunction& all, const Choice& choice);
  bool is_impossible(const Conjunction& all, int effort);
  bool lacks_member(const Conjunction& all, int effort);
  const Json* target_of(const Json& option, const SchemaPath& where);

  // schema_strings.cpp
  Rule string(const Leaf& leaf);
  TextSet strings(const Conjunction& all);

  // schema_lists.cpp
  struct Elements;
  Elements elements_of(const Leaf& leaf);
  Rule array(const Leaf& leaf);
  Rule distinct_elements(const Leaf& leaf, const Elements& elements);
  void add_element(Node from, bool comma, Rule value, Node to);
  Node add_sets(Node from, const std::vector<Rule>& values, const Repetitions& counts);
  Node add_sequences(Node from, const std::vector<Rule>& values, const Repetitions& counts);

  // schema_objects.cpp
  struct Members;
  struct OtherNames;
  Rule object(const Leaf& leaf);
  Members members_of(const Leaf& leaf);
  void add_required(const Leaf& leaf, Members& members);
  void add_ends(const Members& members, const std::vector<Node>& chain, bool enough_at_end,
                Rule other, Node end);
  Atoms value_of(const Conjunction& all, std::string_view name);
  bool is_name(const Conjunction& all, std::string_view name);
  Rule other_member(const Leaf& leaf, const Members& members);
  std::vector<OtherNames> other_names(const Leaf& leaf, const Members& members);
  void split_by_patterns(std::vector<OtherNames>& classes, const Atom& atom);
  Atoms value_of_others(const Conjunction& all, const OtherNames& names);
  void add_unevaluated(const Conjunction& all, const Atoms& evaluating, Atoms& into);
  void add_members(const Leaf& leaf, const Members& members, Rule other, Rule into);
  Rule member(const Leaf& leaf, std::string_view name, Atoms value);

  Grammar& grammar_;
  JsonRules rules_;
  SchemaSource source_;
  Conjunctions conjunctions_;
  PatternCache patterns_;
  InstanceCheck check_;
  MemberIndex members_;
  std::map<std::vector<std::uintptr_t>, Rule> made_;
};

/// Whether `atom` is `whole` or a part of it that holds for the same value.
bool is_part_of(const Atom& atom, const Atom& whole);

}  // namespace troupe::engine::constraints

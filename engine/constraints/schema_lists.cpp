#include "engine/constraints/schema_lists.h"

#include <algorithm>
#include <bit>
#include <set>

#include "engine/base/text/text.h"

namespace troupe::engine::constraints {

namespace {

/// The keywords of one schema that describe elements.
struct List {
  const Atom* atom = nullptr;
  const Json* first = nullptr;
  std::string_view name;
  const Json* rest = nullptr;
  std::string_view rest_name;

  std::size_t size() const { return first == nullptr ? 0 : first->array().size(); }
};

List list_of(const Atom& atom) {
  const Json& schema = *atom.schema;
  const Json* items = schema.find("items");
  if (items != nullptr && items->is_array())  // before draft 2020-12
    return {&atom, items, "items", schema.find("additionalItems"), "additionalItems"};
  const Json* first = schema.find("prefixItems");
  if (first != nullptr && !first->is_array())
    schema_mistake(*atom.where, "prefixItems: expected a list of schemas");
  return {&atom, first, "prefixItems", items, "items"};
}

}  // namespace

SchemaCompiler::Elements SchemaCompiler::elements_of(const Leaf& leaf) {
  Elements out;
  std::vector<List> lists;
  for (const Atom* atom : leaf.all.atoms) {
    if (atom->negated) continue;
    narrow_counts(out.counts, *atom->schema, "minItems", "maxItems", *atom->where);
    const Json* unique = atom->schema->find("uniqueItems");
    out.distinct = out.distinct || (unique != nullptr && *unique == Json(true));
    lists.push_back(list_of(*atom));
    out.first.resize(std::max(out.first.size(), lists.back().size()));
  }
  for (const List& list : lists) {
    const Atom* others = nullptr;
    if (list.rest != nullptr)
      out.rest.push_back(
          others = conjunctions_.atom(*list.rest, conjunctions_.path(*list.atom, list.rest_name)));
    for (std::size_t i = 0; i < out.first.size(); ++i) {
      grammar_.spend(1);
      if (i < list.size())
        out.first[i].push_back(conjunctions_.atom(list.first->array()[i],
                                                  conjunctions_.path(*list.atom, list.name, i)));
      else if (others != nullptr)
        out.first[i].push_back(others);
    }
  }
  return out;
}

Grammar::Rule SchemaCompiler::array(const Leaf& leaf) {
  const Elements elements = elements_of(leaf);
  const Repetitions& counts = elements.counts;
  if (counts.most && *counts.most < counts.least) return grammar_.add_rule();
  if (elements.distinct && counts.most.value_or(2) > 1) return distinct_elements(leaf, elements);
  std::vector<Rule> first;
  for (const Atoms& each : elements.first) first.push_back(compile(each, leaf.depth + 1));
  const Rule item = compile(elements.rest, leaf.depth + 1);
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

/// Different constants: up to eight in any order, more in the order of the schema.
Grammar::Rule SchemaCompiler::distinct_elements(const Leaf& leaf, const Elements& elements) {
  const Conjunction all = conjunctions_.of(elements.rest);
  auto values = all.choices.empty() && !all.impossible ? constants_of(all) : std::nullopt;
  if (!values || !elements.first.empty())
    schema_unsupported(leaf.where(),
                       "uniqueItems is supported for lists of at most one element and for items "
                       "that are constants (enum)");
  std::vector<Rule> rules;
  std::set<std::string> known;
  for (const Json& value : *values)
    if (known.insert(canonical_text(value)).second) rules.push_back(rules_.literal(value.dump()));
  const Rule rule = grammar_.add_rule();
  const Node begin = grammar_.text(grammar_.begin(rule), "[");
  const Node end = rules.size() <= 8 ? add_sets(begin, rules, elements.counts)
                                     : add_sequences(begin, rules, elements.counts);
  grammar_.add_empty(grammar_.text(end, "]"), grammar_.end(rule));
  return rule;
}

void SchemaCompiler::add_element(Node from, bool comma, Rule value, Node to) {
  grammar_.add_empty(grammar_.call(comma ? grammar_.call(from, rules_.comma()) : from, value), to);
}

/// Some of the values in any order. A node for each set of values so far.
Grammar::Node SchemaCompiler::add_sets(Node from, const std::vector<Rule>& values,
                                       const Repetitions& counts) {
  const Node end = grammar_.add_node();
  std::vector<Node> nodes;
  for (unsigned set = 0; set < 1U << values.size(); ++set) nodes.push_back(grammar_.add_node());
  grammar_.add_empty(from, nodes[0]);
  for (unsigned set = 0; set < nodes.size(); ++set) {
    const int size = std::popcount(set);
    if (size >= counts.least) grammar_.add_empty(nodes[set], end);
    for (std::size_t i = 0; i < values.size() && size < counts.most.value_or(size + 1); ++i)
      if ((set >> i & 1) == 0) add_element(nodes[set], set != 0, values[i], nodes[set | 1U << i]);
  }
  return end;
}

/// Some of the values in their order. Nodes by the number of values so far.
Grammar::Node SchemaCompiler::add_sequences(Node from, const std::vector<Rule>& values,
                                            const Repetitions& counts) {
  const auto cap =
      std::min(values.size(), static_cast<std::size_t>(counts.most.value_or(max_repetitions)));
  std::vector<Node> before = {from};
  for (const Rule value : values) {
    std::vector<Node> after;
    for (std::size_t size = 0; size <= std::min(before.size(), cap); ++size)
      after.push_back(grammar_.add_node());
    for (std::size_t size = 0; size < before.size(); ++size) {
      grammar_.add_empty(before[size], after[size]);
      if (size < cap) add_element(before[size], size > 0, value, after[size + 1]);
    }
    before = std::move(after);
  }
  const Node end = grammar_.add_node();
  for (std::size_t size = 0; size < before.size(); ++size)
    if (std::cmp_greater_equal(size, counts.least)) grammar_.add_empty(before[size], end);
  return end;
}

}  // namespace troupe::engine::constraints

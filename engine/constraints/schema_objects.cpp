#include "engine/constraints/schema_objects.h"

#include <algorithm>
#include <unordered_map>

#include "engine/base/text/text.h"

namespace troupe::engine::constraints {

namespace {

constexpr std::size_t max_properties = 5'000;
/// Of the names that others must differ from; with more, others are not written.
constexpr std::size_t max_name_bytes = 2'000;
constexpr std::size_t max_name_classes = 64;

bool is_denied(const Atoms& value) {
  return std::ranges::any_of(
      value, [](const Atom* atom) { return *atom->schema == Json(false) && !atom->negated; });
}

const Json* members_object(const Atom& atom, std::string_view keyword) {
  const Json* out = atom.negated ? nullptr : atom.schema->find(keyword);
  if (out != nullptr && !out->is_object())
    schema_mistake(*atom.where, cat(keyword, ": expected an object"));
  return out;
}

const Json* positive(const Atom& atom, std::string_view keyword) {
  return atom.negated ? nullptr : atom.schema->find(keyword);
}

}  // namespace

bool SchemaCompiler::is_name(const Conjunction& all, std::string_view name) {
  return std::ranges::all_of(all.atoms, [&](const Atom* atom) {
    const Json* names = positive(*atom, "propertyNames");
    return names == nullptr || check_.is_instance(Json(name), *names, false);
  });
}

/// Adds what atoms require of members that none of their parts, `evaluating`, describes.
void SchemaCompiler::add_unevaluated(const Conjunction& all, const Atoms& evaluating, Atoms& into) {
  for (const Atom* atom : all.atoms) {
    const Json* others = positive(*atom, "unevaluatedProperties");
    if (others == nullptr ||
        std::ranges::any_of(evaluating, [&](const Atom* each) { return is_part_of(*each, *atom); }))
      continue;
    into.push_back(conjunctions_.atom(*others, conjunctions_.path(*atom, "unevaluatedProperties")));
  }
}

/// What the value of a member must satisfy.
Atoms SchemaCompiler::value_of(const Conjunction& all, std::string_view name) {
  Atoms out, evaluating;
  const auto add = [&](const Atom& of, const Json& schema, const SchemaPath& where) {
    out.push_back(conjunctions_.atom(schema, where));
    if (!of.silent) evaluating.push_back(&of);
  };
  for (const Atom* atom : all.atoms) {
    grammar_.spend(1);
    bool found = false;
    if (const Json* properties = members_object(*atom, "properties"))
      if (const Json* described = members_.find(*properties, name)) {
        add(*atom, *described, conjunctions_.path(*atom, "properties", name));
        found = true;
      }
    if (const Json* patterns = members_object(*atom, "patternProperties"))
      for (const auto& [pattern, described] : patterns->object()) {
        if (!patterns_.perhaps(pattern).contains(name)) continue;
        add(*atom, described,
            conjunctions_.path(*atom, "patternProperties", std::string_view(pattern)));
        found = found || patterns_.surely(pattern).contains(name);
      }
    if (const Json* others = positive(*atom, "additionalProperties"); others != nullptr && !found)
      add(*atom, *others, conjunctions_.path(*atom, "additionalProperties"));
  }
  add_unevaluated(all, evaluating, out);
  return out;
}

SchemaCompiler::Members SchemaCompiler::members_of(const Leaf& leaf) {
  Members out;
  bool described = false, open = false;
  for (const Atom* atom : leaf.all.atoms) {
    if (atom->negated) continue;
    narrow_counts(out.counts, *atom->schema, "minProperties", "maxProperties", *atom->where);
    if (const Json* properties = members_object(*atom, "properties")) {
      for (const auto& [name, schema] : properties->object()) {
        out.find(name, leaf.where());
        described = described || !(schema == Json(false));
      }
      described = described || properties->object().empty();
    }
    const Json* others = atom->schema->find("additionalProperties");
    const Json* patterns = members_object(*atom, "patternProperties");
    open = open || (others != nullptr && others->is_object() && !others->object().empty()) ||
           (patterns != nullptr && !patterns->object().empty());
  }
  add_required(leaf, out);
  const bool closed = described || (out.required > 0 && !out.any_others);
  std::size_t bytes = 0;
  for (auto& member : out.list) {
    out.names.emplace_back(member.name);
    bytes += member.name.size();
    member.value = value_of(leaf.all, member.name);
    if (!is_name(leaf.all, member.name))
      member.value.push_back(conjunctions_.atom(conjunctions_.made(false), leaf.where()));
  }
  std::erase_if(out.list, [](const auto& each) { return !each.required && is_denied(each.value); });
  const bool few = std::cmp_less(out.list.size(), out.counts.least);
  out.others = bytes <= max_name_bytes && (open || few || !closed);
  return out;
}

void SchemaCompiler::add_required(const Leaf& leaf, Members& members) {
  for (const Atom* atom : leaf.all.atoms) {
    const Json* names = positive(*atom, "required");
    const Json* others = positive(*atom, "additionalProperties");
    if (others != nullptr && !(*others == Json(false))) members.any_others = true;
    if (names == nullptr || names->is_bool()) continue;
    if (!names->is_array()) schema_mistake(*atom->where, "required: expected a list of names");
    for (const Json& name : names->array()) {
      if (!name.is_string()) schema_mistake(*atom->where, "required: expected a list of names");
      auto& member = members.find(name.string(), leaf.where());
      if (!std::exchange(member.required, true)) ++members.required;
    }
  }
}

SchemaCompiler::Members::Member& SchemaCompiler::Members::find(std::string_view name,
                                                               const SchemaPath& where) {
  const auto [found, is_new] = places.try_emplace(name, list.size());
  if (is_new) list.push_back({.name = name});
  if (list.size() > max_properties)
    schema_unsupported(
        where, cat("an object of more than ", max_properties, " properties is not supported"));
  return list[found->second];
}

void SchemaCompiler::split_by_patterns(std::vector<OtherNames>& classes, const Atom& atom) {
  const Json* patterns = members_object(atom, "patternProperties");
  if (patterns == nullptr) return;
  for (const auto& [pattern, schema] : patterns->object()) {
    const Atom* value = conjunctions_.atom(
        schema, conjunctions_.path(atom, "patternProperties", std::string_view(pattern)));
    std::vector<OtherNames> next;
    for (OtherNames& each : classes) {
      OtherNames matched = each;
      matched.names = each.names->intersected(patterns_.surely(pattern));
      each.names = each.names->without(patterns_.perhaps(pattern));
      if (!matched.names->empty()) {
        matched.value.push_back(value);
        matched.matched.push_back(&atom);
        next.push_back(std::move(matched));
      }
      if (!each.names->empty()) next.push_back(std::move(each));
    }
    if (next.size() > max_name_classes)
      schema_unsupported(*atom.where, "patternProperties: more than 64 combinations of patterns");
    classes = std::move(next);
  }
}

std::vector<SchemaCompiler::OtherNames> SchemaCompiler::other_names(const Leaf& leaf,
                                                                    const Members& members) {
  std::vector<OtherNames> out(1);
  Atoms names;
  bool patterns = false;
  for (const Atom* atom : leaf.all.atoms) {
    if (const Json* schema = positive(*atom, "propertyNames"))
      names.push_back(conjunctions_.atom(*schema, conjunctions_.path(*atom, "propertyNames")));
    patterns = patterns || positive(*atom, "patternProperties") != nullptr;
  }
  if (members.names.empty() && names.empty() && !patterns) return out;
  // Without escapes.
  out[0].names = patterns_.whole(R"([^\x00-\x1F"\\]*)");
  if (!members.names.empty())
    out[0].names = out[0].names->without(TextSet::of_texts(grammar_.work(), members.names));
  if (!names.empty()) {
    const Conjunction all = conjunctions_.of(names);
    if (!all.choices.empty())
      schema_unsupported(leaf.where(), "propertyNames with alternatives is not supported");
    if (all.impossible || !all.types.has(JsonType::string)) return {};
    out[0].names = out[0].names->intersected(strings(all));
  }
  for (const Atom* atom : leaf.all.atoms) split_by_patterns(out, *atom);
  std::erase_if(out, [](const OtherNames& each) { return each.names->empty(); });
  return out;
}

Atoms SchemaCompiler::value_of_others(const Conjunction& all, const OtherNames& names) {
  Atoms out = names.value, evaluating = names.matched;
  for (const Atom* atom : all.atoms) {
    const Json* others = positive(*atom, "additionalProperties");
    if (others == nullptr || std::ranges::find(names.matched, atom) != names.matched.end())
      continue;
    out.push_back(conjunctions_.atom(*others, conjunctions_.path(*atom, "additionalProperties")));
    if (!atom->silent) evaluating.push_back(atom);
  }
  add_unevaluated(all, evaluating, out);
  return out;
}

/// A member with another name; without text when there is none.
Grammar::Rule SchemaCompiler::other_member(const Leaf& leaf, const Members& members) {
  const Rule rule = grammar_.add_rule();
  for (const OtherNames& each : other_names(leaf, members)) {
    const Atoms value = value_of_others(leaf.all, each);
    if (is_denied(value)) continue;
    Node at = grammar_.begin(rule);
    if (each.names)
      at = grammar_.text(each.names->add_to(grammar_, grammar_.text(at, "\"")), "\"");
    else
      at = grammar_.call(at, rules_.string());
    at = grammar_.call(grammar_.call(at, rules_.colon()), compile(value, leaf.depth + 1));
    grammar_.add_empty(at, grammar_.end(rule));
  }
  return rule;
}

Grammar::Rule SchemaCompiler::object(const Leaf& leaf) {
  const Members members = members_of(leaf);
  const Rule rule = grammar_.add_rule();
  const auto& [least, most] = members.counts;
  if (most && *most < least) return rule;
  if (members.others && std::cmp_greater(least, members.list.size() + 1))
    schema_unsupported(leaf.where(),
                       cat("minProperties above ", members.list.size() + 1,
                           " is not supported here: names of other members may repeat"));
  const Rule other = members.others ? other_member(leaf, members) : -1;
  add_members(leaf, members, other, rule);
  return rule;
}

Grammar::Rule SchemaCompiler::member(const Leaf& leaf, std::string_view name, Atoms value) {
  const Rule value_rule = compile(std::move(value), leaf.depth + 1);
  const Rule rule = grammar_.add_rule();
  const Node key = grammar_.text(grammar_.begin(rule), Json(name).dump());
  grammar_.add_empty(grammar_.call(grammar_.call(key, rules_.colon()), value_rule),
                     grammar_.end(rule));
  return rule;
}

/// The members in their order; optional ones may be left out. Chains of nodes by the number of
/// members so far, as far as it matters: whether a comma is needed, and the bounds.
void SchemaCompiler::add_members(const Leaf& leaf, const Members& members, Rule other, Rule into) {
  const auto least = static_cast<std::size_t>(members.counts.least);
  const auto most = static_cast<std::size_t>(members.counts.most.value_or(max_repetitions));
  const std::size_t named = members.list.size();
  const bool upper = members.counts.most && (other >= 0 || most < named);
  std::size_t cap = 1;
  if (least > members.required) cap = std::max(cap, least);
  if (upper) cap = std::max(cap, most);
  cap = std::min(cap, std::max<std::size_t>(named, 1));
  std::vector<Node> at = {grammar_.text(grammar_.begin(into), "{")};
  for (const auto& [name, is_required, value] : members.list) {
    const Rule rule = member(leaf, name, value);
    std::vector<Node> next;
    for (std::size_t n = 0; n <= std::min(at.size(), cap); ++n) next.push_back(grammar_.add_node());
    for (std::size_t n = 0; n < at.size(); ++n) {
      if (!is_required) grammar_.add_empty(at[n], next[n]);
      if (upper && n == most) continue;
      const Node from = n == 0 ? at[n] : grammar_.call(at[n], rules_.comma());
      grammar_.add_empty(grammar_.call(from, rule), next[std::min(n + 1, cap)]);
    }
    at = std::move(next);
  }
  const Node end = grammar_.add_node();
  add_ends(members, at, least <= members.required, other, end);
  grammar_.add_empty(grammar_.text(end, "}"), grammar_.end(into));
}

/// Ends, and other members before them. `enough_at_end`: the last node of the chain has enough
/// members whatever its number.
void SchemaCompiler::add_ends(const Members& members, const std::vector<Node>& chain,
                              bool enough_at_end, Rule other, Node end) {
  const auto& [least, most] = members.counts;
  const Rule next = grammar_.add_rule();
  if (other >= 0)
    grammar_.add_empty(grammar_.call(grammar_.call(grammar_.begin(next), rules_.comma()), other),
                       grammar_.end(next));
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const auto n = static_cast<int>(i);
    const bool enough = n >= least || (enough_at_end && i + 1 == chain.size() && i > 0);
    if (enough) grammar_.add_empty(chain[i], end);
    // Other names may repeat: of several, one counts.
    if (other < 0 || (most && n >= *most) || (!enough && n + 1 < least)) continue;
    const Node from = n == 0 ? chain[i] : grammar_.call(chain[i], rules_.comma());
    Repetitions more;
    if (most) more.most = *most - n - 1;
    grammar_.add_empty(add_repeated(grammar_, grammar_.call(from, other), next, more), end);
  }
}

}  // namespace troupe::engine::constraints

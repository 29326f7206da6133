#include "engine/constraints/grammar.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::engine::constraints {

void Grammar::spend(std::size_t units) const {
  if (work_ != nullptr) work_->spend(units);
}

Grammar::Node Grammar::add_node() {
  spend(1);
  if (ends_.size() >= max_nodes) {
    throw Failure(Error{Errc::full, cat("the constraint needs more than ", max_nodes,
                                        " states; lower its counts and lengths")});
  }
  ends_.push_back(false);
  return static_cast<Node>(ends_.size()) - 1;
}

Grammar::Rule Grammar::add_rule() {
  if (rules_.size() >= max_rules)
    throw Failure(Error{Errc::full, cat("the constraint needs more than ", max_rules, " rules")});
  const Node begin = add_node(), end = add_node();
  ends_[static_cast<std::size_t>(end)] = true;
  rules_.emplace_back(begin, end);
  return static_cast<Rule>(rules_.size()) - 1;
}

Grammar::Node Grammar::add_edge(Node from, Edge edge) {
  spend(1);
  if (new_edges_.size() >= max_edges)
    throw Failure(Error{Errc::full, cat("the constraint needs more than ", max_edges,
                                        " transitions; simplify it")});
  new_edges_.push_back({from, edge});
  return edge.target;
}

void Grammar::add_empty(Node from, Node to) {
  add_edge(from, {.kind = Kind::nothing, .target = to});
}

void Grammar::add_bytes(Node from, unsigned char low, unsigned char high, Node to) {
  add_edge(from, {.kind = Kind::bytes, .low = low, .high = high, .target = to});
}

Grammar::Node Grammar::call(Node from, Rule rule) {
  return add_edge(from, {.kind = Kind::call, .rule = rule, .target = add_node()});
}

Grammar::Node Grammar::repeat(Node from, Rule rule, int count, bool exact) {
  repetitions_.push_back({.rule = rule, .count = count, .exact = exact});
  return add_edge(from, {.kind = Kind::repeat,
                         .rule = static_cast<std::int32_t>(repetitions_.size()) - 1,
                         .target = add_node()});
}

Grammar::Node Grammar::text(Node from, std::string_view bytes) {
  for (const char each : bytes) {
    const Node to = add_node();
    const auto byte = static_cast<unsigned char>(each);
    add_bytes(from, byte, byte, to);
    from = to;
  }
  return from;
}

Grammar::Node Grammar::texts(Node from, std::vector<std::string> texts) {
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  const Node to = add_node();
  std::vector<Node> path = {from};  // by the bytes of the text before
  std::string_view before;
  for (const std::string& each : texts) {
    spend(1 + each.size());
    const auto common =
        static_cast<std::size_t>(std::ranges::mismatch(before, each).in2 - each.begin());
    path.resize(common + 1);
    for (std::size_t i = common; i < each.size(); ++i)
      path.push_back(text(path.back(), std::string_view(each).substr(i, 1)));
    add_empty(path.back(), to);
    before = each;
  }
  return to;
}

/// The rule that must have a text where the edge is used; -1: none.
Grammar::Rule Grammar::needed_rule(const Edge& edge) const {
  if (edge.kind == Kind::call) return edge.rule;
  if (edge.kind != Kind::repeat) return -1;
  const Repetition& repeated = repetition(edge);
  return repeated.exact ? repeated.rule : -1;
}

/// Nodes from which the end of their rule can be reached, if `silent`, without reading a byte.
std::vector<bool> Grammar::nodes_with_end(bool silent) const {
  spend(new_edges_.size() + ends_.size());
  const auto each_use = [&](auto use) {  // an edge needs its target, and perhaps a rule
    for (std::size_t e = 0; e < new_edges_.size(); ++e) {
      const Edge& edge = new_edges_[e].edge;
      if (silent && edge.kind == Kind::bytes) continue;
      use(static_cast<std::size_t>(edge.target), e);
      if (const Rule rule = needed_rule(edge); rule >= 0)
        use(static_cast<std::size_t>(begin(rule)), e);
    }
  };
  std::vector<std::uint32_t> first(ends_.size() + 1);  // of uses, by node
  each_use([&](std::size_t node, std::size_t) { ++first[node + 1]; });
  for (std::size_t n = 0; n < ends_.size(); ++n) first[n + 1] += first[n];
  std::vector<std::uint32_t> uses(first.back()), next(first.begin(), first.end() - 1);
  each_use(
      [&](std::size_t node, std::size_t e) { uses[next[node]++] = static_cast<std::uint32_t>(e); });
  std::vector<bool> good = ends_;
  std::vector<Node> found;
  for (std::size_t n = 0; n < ends_.size(); ++n)
    if (ends_[n]) found.push_back(static_cast<Node>(n));
  while (!found.empty()) {
    const auto node = static_cast<std::size_t>(found.back());
    found.pop_back();
    for (std::uint32_t u = first[node]; u < first[node + 1]; ++u) {
      const auto& [from, edge] = new_edges_[uses[u]];
      const Rule rule = needed_rule(edge);
      if (good[static_cast<std::size_t>(from)] || !good[static_cast<std::size_t>(edge.target)] ||
          (rule >= 0 && !good[static_cast<std::size_t>(begin(rule))]))
        continue;
      good[static_cast<std::size_t>(from)] = true;
      found.push_back(from);
    }
  }
  return good;
}

void Grammar::remove_dead_edges() {
  const std::vector<bool> good = nodes_with_end(false);
  const auto is_good = [&](Node node) { return good[static_cast<std::size_t>(node)]; };
  std::erase_if(new_edges_, [&](const NewEdge& each) {
    const Rule rule = needed_rule(each.edge);
    return !is_good(each.edge.target) || (rule >= 0 && !is_good(begin(rule)));
  });
  for (auto& [from, edge] : new_edges_)
    if (edge.kind == Kind::repeat && !is_good(begin(repetition(edge).rule)))
      edge.kind = Kind::nothing;  // without texts, zero times or more
}

/// Moves the edges to their final places.
void Grammar::sort_edges() {
  spend(new_edges_.size() + ends_.size());
  first_edge_.assign(ends_.size() + 1, 0);
  for (const NewEdge& each : new_edges_) ++first_edge_[static_cast<std::size_t>(each.from) + 1];
  for (std::size_t n = 0; n < ends_.size(); ++n) first_edge_[n + 1] += first_edge_[n];
  std::vector<std::uint32_t> next(first_edge_.begin(), first_edge_.end() - 1);
  edges_.resize(new_edges_.size());
  for (const auto& [from, edge] : new_edges_) edges_[next[static_cast<std::size_t>(from)]++] = edge;
  std::vector<NewEdge>().swap(new_edges_);
}

void Grammar::classify_bytes() {
  std::array<bool, 257> begins{};  // a class
  for (const Edge& edge : edges_) {
    if (edge.kind != Kind::bytes) continue;
    begins[edge.low] = true;
    begins[edge.high + std::size_t{1}] = true;
  }
  std::uint8_t number = 0;
  for (std::size_t byte = 1; byte < byte_classes_.size(); ++byte) {
    number = static_cast<std::uint8_t>(number + (begins[byte] ? 1 : 0));
    byte_classes_[byte] = number;
  }
}

/// For each rule those that it can call before it reads a byte, all in one list; counts: by rule.
std::vector<Grammar::Rule> Grammar::silent_calls(const std::vector<bool>& nullable,
                                                 std::vector<std::size_t>& counts) const {
  std::vector<Rule> calls;
  std::vector<bool> seen(ends_.size());  // a node belongs to one rule
  for (const auto& rule : rules_) {
    const std::size_t before = calls.size();
    std::vector<Node> open = {rule.first};
    while (!open.empty()) {
      const Node node = open.back();
      open.pop_back();
      for (const Edge& edge : edges(node)) {
        if (edge.kind == Kind::bytes) continue;
        if (edge.kind != Kind::nothing) {
          const Rule called = edge.kind == Kind::call ? edge.rule : repetition(edge).rule;
          calls.push_back(called);
          if (needed_rule(edge) >= 0 && !nullable[static_cast<std::size_t>(called)]) continue;
        }
        if (seen[static_cast<std::size_t>(edge.target)]) continue;
        seen[static_cast<std::size_t>(edge.target)] = true;
        open.push_back(edge.target);
      }
    }
    counts.push_back(calls.size() - before);
  }
  return calls;
}

/// Whether a rule can call itself before it reads a byte.
bool Grammar::is_left_recursive(const std::vector<bool>& nullable) const {
  spend(edges_.size() + rules_.size());
  std::vector<std::size_t> left;  // silent calls of a rule that remain
  const std::vector<Rule> calls = silent_calls(nullable, left);
  std::vector<std::vector<Rule>> callers(rules_.size());
  std::vector<Rule> done;
  std::size_t call = 0;
  for (std::size_t r = 0; r < rules_.size(); ++r) {
    if (left[r] == 0) done.push_back(static_cast<Rule>(r));
    for (std::size_t i = 0; i < left[r]; ++i)
      callers[static_cast<std::size_t>(calls[call++])].push_back(static_cast<Rule>(r));
  }
  // Removes the rules that call no remaining rule first; what is left is on or before a cycle.
  std::size_t removed = 0;
  for (; !done.empty(); ++removed) {
    const Rule rule = done.back();
    done.pop_back();
    for (const Rule caller : callers[static_cast<std::size_t>(rule)])
      if (--left[static_cast<std::size_t>(caller)] == 0) done.push_back(caller);
  }
  return removed < rules_.size();
}

Result<> Grammar::finish() {
  remove_dead_edges();
  const std::vector<bool> silent = nodes_with_end(true);
  std::vector<bool> nullable;
  for (const auto& rule : rules_) nullable.push_back(silent[static_cast<std::size_t>(rule.first)]);
  for (Repetition& each : repetitions_) {
    each.nullable = nullable[static_cast<std::size_t>(each.rule)];
    each.exact = each.exact && !each.nullable;
  }
  sort_edges();
  if (edges(begin(root_)).empty() && !is_end(begin(root_)))
    return fail(Errc::bad_input, "no text satisfies the constraint");
  if (is_left_recursive(nullable)) {
    return fail(Errc::bad_input,
                "a rule can call itself before it reads a character (left recursion); rewrite it "
                "as a repetition");
  }
  classify_bytes();
  work_ = nullptr;
  return {};
}

std::size_t Grammar::bytes() const {
  return edges_.capacity() * sizeof(Edge) + first_edge_.capacity() * sizeof(std::uint32_t) +
         repetitions_.capacity() * sizeof(Repetition) + ends_.capacity() / 8 +
         rules_.capacity() * sizeof(rules_[0]);
}

}  // namespace troupe::engine::constraints

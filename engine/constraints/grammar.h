// Grammar: a recursive transition network over bytes (Woods 1970). Each rule is a nondeterministic
// automaton whose edges read a byte, read nothing, call a rule, or call it several times: a
// context-free grammar. Regular expressions, JSON schemas and EBNF are translated to it;
// automaton.h runs it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/threads/cancellation.h"

namespace troupe::engine::constraints {

/// Counts steps that cost about the same, so that the bound does not depend on the load of the
/// machine; now and then it polls the cancellation and the deadline of this thread's work.
class CompileWork {
 public:
  explicit CompileWork(std::uint64_t units) : left_(units) {}

  /// Throws Failure: Errc::full when the units are used up, errors of check_cancelled().
  void spend(std::uint64_t units) {
    if (units > left_) {
      left_ = 0;
      throw Failure(
          Error{Errc::full, "the constraint takes more work than is allowed; simplify it"});
    }
    left_ -= units;
    until_poll_ -= static_cast<std::int64_t>(units);
    if (until_poll_ > 0) return;
    until_poll_ = poll_period;
    throw_if_cancelled();
  }

 private:
  static constexpr std::int64_t poll_period = 10'000;

  std::uint64_t left_;
  std::int64_t until_poll_ = poll_period;
};

/// Bounds of one grammar.
inline constexpr std::size_t max_nodes = 200'000, max_rules = 50'000, max_edges = 1'000'000;
/// Nesting of groups in an expression and of schemas.
inline constexpr int max_nesting = 100;

/// Grows node by node, then is finished and read edge by edge. Functions that add to it throw
/// Failure: Errc::full beyond the bounds, and what CompileWork throws.
class Grammar {
 public:
  using Node = std::int32_t;
  using Rule = std::int32_t;
  enum class Kind : std::uint8_t { nothing, bytes, call, repeat };
  struct Edge {
    Kind kind = Kind::nothing;
    unsigned char low = 0, high = 0;  ///< of kind bytes, both included
    std::int32_t rule = 0;            ///< of kind call; of kind repeat: an index of repetitions
    Node target = 0;
  };
  /// A rule `count` times in a row, or at most `count` times.
  struct Repetition {
    Rule rule = 0;
    std::int32_t count = 0;
    bool exact = false;
    /// The rule matches the empty text; then `exact` is false, which describes the same texts.
    bool nullable = false;
  };

  /// `work`: charged for each node and edge, and by those who add to the grammar; nullptr: none.
  /// Must outlive the growth.
  explicit Grammar(CompileWork* work = nullptr) : work_(work) {}

  Node add_node();
  Rule add_rule();
  Node begin(Rule rule) const { return rules_[static_cast<std::size_t>(rule)].first; }
  Node end(Rule rule) const { return rules_[static_cast<std::size_t>(rule)].second; }
  Rule root() const { return root_; }
  void set_root(Rule rule) { root_ = rule; }
  std::size_t nodes() const { return ends_.size(); }
  /// What the growth charges; nullptr: nothing.
  CompileWork* work() const { return work_; }
  /// Charges for work that adds nothing.
  void spend(std::size_t units) const;

  void add_empty(Node from, Node to);
  void add_bytes(Node from, unsigned char low, unsigned char high, Node to);

  // These return the node behind what they read.
  Node call(Node from, Rule rule);
  Node repeat(Node from, Rule rule, int count, bool exact);
  Node text(Node from, std::string_view bytes);
  /// One of the texts; beginnings that they share are shared nodes.
  Node texts(Node from, std::vector<std::string> texts);

  /// Removes the edges that lead to no end. Errc::bad_input when the root matches no text, and for
  /// left recursion. Nothing is added afterwards.
  Result<> finish();

  // Of a finished grammar.
  std::span<const Edge> edges(Node node) const {
    const auto at = static_cast<std::size_t>(node);
    return std::span(edges_).subspan(first_edge_[at], first_edge_[at + 1] - first_edge_[at]);
  }
  /// The place of an edge of edges(), and back.
  std::int32_t index_of(const Edge& edge) const {
    return static_cast<std::int32_t>(&edge - edges_.data());
  }
  const Edge& edge(std::int32_t index) const { return edges_[static_cast<std::size_t>(index)]; }
  const Repetition& repetition(const Edge& edge) const {
    return repetitions_[static_cast<std::size_t>(edge.rule)];
  }
  /// Whether the node is the end of a rule.
  bool is_end(Node node) const { return ends_[static_cast<std::size_t>(node)]; }
  /// Classes of bytes that no edge distinguishes, numbered from 0 without gaps.
  const std::array<std::uint8_t, 256>& byte_classes() const { return byte_classes_; }
  std::size_t bytes() const;

 private:
  struct NewEdge {
    Node from = 0;
    Edge edge;
  };
  Node add_edge(Node from, Edge edge);
  Rule needed_rule(const Edge& edge) const;
  std::vector<bool> nodes_with_end(bool silent) const;
  std::vector<Rule> silent_calls(const std::vector<bool>& nullable,
                                 std::vector<std::size_t>& counts) const;
  bool is_left_recursive(const std::vector<bool>& nullable) const;
  void remove_dead_edges();
  void sort_edges();
  void classify_bytes();

  CompileWork* work_;
  std::vector<NewEdge> new_edges_;         // until finish()
  std::vector<Edge> edges_;                // by node
  std::vector<std::uint32_t> first_edge_;  // by node, and the end
  std::vector<Repetition> repetitions_;
  std::vector<bool> ends_;                    // by node
  std::vector<std::pair<Node, Node>> rules_;  // begin, end
  std::array<std::uint8_t, 256> byte_classes_{};
  Rule root_ = 0;
};

}  // namespace troupe::engine::constraints

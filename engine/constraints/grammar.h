// Grammar: a recursive transition network over bytes (Woods 1970). Each rule is a nondeterministic
// automaton whose edges read a byte, read nothing, or call a rule: a context-free grammar. Regular
// expressions, JSON schemas and EBNF are translated to it; automaton.h runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace troupe::engine::constraints {

/// Bounds of one grammar.
inline constexpr std::size_t max_nodes = 200'000, max_rules = 50'000;
/// Nesting of groups in an expression and of schemas.
inline constexpr int max_nesting = 100;

/// Code points, both ends included.
using CodePointRange = std::pair<char32_t, char32_t>;

/// Encoding of the characters that are read: as they are, or as in a JSON string, where quotation
/// marks, backslashes and control characters are escaped.
enum class TextForm { plain, json };

/// Grows node by node. Functions that add nodes or rules throw Failure (Errc::full) beyond the
/// bounds.
class Grammar {
 public:
  using Node = std::int32_t;
  using Rule = std::int32_t;
  enum class Kind : std::uint8_t { nothing, bytes, call };
  struct Edge {
    Kind kind = Kind::nothing;
    unsigned char low = 0, high = 0;  ///< of kind bytes, both included
    Rule rule = 0;                    ///< of kind call
    Node target = 0;
  };

  Node add_node();
  Rule add_rule();
  Node begin(Rule rule) const { return rules_[static_cast<std::size_t>(rule)].first; }
  Node end(Rule rule) const { return rules_[static_cast<std::size_t>(rule)].second; }
  Rule root() const { return root_; }
  void set_root(Rule rule) { root_ = rule; }
  std::size_t nodes() const { return edges_.size(); }
  std::span<const Edge> edges(Node node) const { return edges_[static_cast<std::size_t>(node)]; }
  /// Whether the node is the end of a rule.
  bool is_end(Node node) const { return ends_[static_cast<std::size_t>(node)]; }

  void add_empty(Node from, Node to);
  void add_bytes(Node from, unsigned char low, unsigned char high, Node to);

  // These return the node behind what they read.
  Node call(Node from, Rule rule);
  Node text(Node from, std::string_view bytes);
  /// One of the code points; surrogates never match. An empty set matches nothing.
  Node code_points(Node from, std::span<const CodePointRange> ranges, TextForm form);

  /// Removes the edges that lead to no end. Errc::bad_input when the root matches no text, and for
  /// left recursion.
  Result<> finish();

 private:
  void add_utf8(Node from, char32_t low, char32_t high, Node to);
  void add_json_escape(Node from, char32_t value, Node to);
  std::vector<bool> productive_nodes() const;
  std::vector<bool> nullable_rules() const;
  bool is_left_recursive() const;

  std::vector<std::vector<Edge>> edges_;      // by node
  std::vector<bool> ends_;                    // by node
  std::vector<std::pair<Node, Node>> rules_;  // begin, end
  Rule root_ = 0;
};

}  // namespace troupe::engine::constraints

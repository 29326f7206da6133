// TextSet: a regular set of texts of valid UTF-8, as a deterministic automaton over bytes, for what
// several assertions on one string have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/constraints/grammar.h"
#include "engine/constraints/repetition.h"

namespace troupe::engine::constraints {

/// Immutable. What makes a set charges `work` for it, and throws Failure (Errc::full) when it needs
/// more than max_text_states.
class TextSet {
 public:
  static constexpr std::size_t max_text_states = 50'000;
  using Fill = std::function<Grammar::Node(Grammar&, Grammar::Node from)>;

  /// What `fill` adds to a grammar behind a node.
  static TextSet of(CompileWork* work, const Fill& fill);
  static TextSet of_texts(CompileWork* work, const std::vector<std::string>& texts);
  static TextSet all(CompileWork* work);
  /// Digits of the multiples of `divisor`, which is positive.
  static TextSet multiples(CompileWork* work, std::int32_t divisor);

  TextSet intersected(const TextSet& other) const;
  /// What is in this set and not in `other`.
  TextSet without(const TextSet& other) const;
  /// Texts whose code points are as many as `counts` says.
  TextSet of_length(Repetitions counts) const;

  bool empty() const { return states_.empty(); }
  bool contains(std::string_view text) const;
  /// Adds the texts behind `from`, as they stand within a JSON string or, if `plain`, unchanged,
  /// and returns the node behind them.
  Grammar::Node add_to(Grammar& grammar, Grammar::Node from, bool plain = false) const;

 private:
  static constexpr std::int32_t none = -1;
  struct Range {  // of bytes, both included
    unsigned char low = 0, high = 0;
    std::int32_t target = 0;
  };
  struct State {
    bool accepts = false;
    std::vector<Range> ranges;  // in order, without overlaps
  };

  explicit TextSet(CompileWork* work) : work_(work) {}
  void spend(std::size_t units) const;
  std::int32_t add_state(bool accepts);
  static void add_range(State& state, unsigned char low, unsigned char high, std::int32_t target);
  std::int32_t next(std::int32_t state, unsigned char byte) const;
  Range range_at(std::int32_t state, int at, int last) const;
  static bool add_unescaped(Grammar& grammar, Grammar::Node from, const Range& range,
                            Grammar::Node to);
  TextSet product(const TextSet& other, bool negated) const;
  void trim();

  CompileWork* work_;
  std::vector<State> states_;  // [0] is the start; empty: no text
};

}  // namespace troupe::engine::constraints

// Automaton: runs a grammar byte by byte. A state is the set of all paths through the grammar that
// agree with the bytes so far, each a node with a stack of the nodes to return to and of counts;
// states and stacks are numbered when they are first reached, so that a known transition is a
// look-up.
//
// A repetition is one entry of a stack, with its count. Of paths that differ only in the counts of
// "at most N times", those with lower counts allow all that the others do and stay alone:
// (.?){0,1000} has one path. Bytes that the grammar does not distinguish have one transition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/constraints/grammar.h"
#include "engine/constraints/pair_set.h"
#include "engine/constraints/path_stacks.h"

namespace troupe::engine::constraints {

/// Bounds of the run of one grammar.
struct AutomatonLimits {
  std::size_t paths = 2048;                   ///< in a state
  std::size_t bytes = std::size_t{32} << 20;  ///< of all states
  /// Work of all new states, in paths and edges that were followed: somewhat less than a second.
  std::uint64_t work = 30'000'000;
};

class Automaton {
 public:
  using State = std::int32_t;
  static constexpr State dead = -1;

  /// `grammar`: finished. Throws as step() does.
  Automaton(Grammar grammar, AutomatonLimits limits);

  State start() const { return start_; }
  /// The state after one more byte; dead when no text continues so. Throws Failure (Errc::full)
  /// beyond the limits, again and again beyond those of bytes and work.
  State step(State state, unsigned char byte);
  /// The same; a new transition is not kept.
  State step_once(State state, unsigned char byte);
  /// A state with the same continuations of at most `length` bytes, always the same: repetitions
  /// that these cannot reach are left out. Throws as step() does.
  State within(State state, std::size_t length);
  /// Whether the bytes so far are a whole text of the grammar.
  bool accepts(State state) const { return states_[static_cast<std::size_t>(state)].accepts; }
  /// Whether no byte may follow.
  bool ends(State state) const { return states_[static_cast<std::size_t>(state)].size == 0; }
  /// Of the grammar and the states.
  std::size_t bytes() const { return bytes_; }
  /// Paths and edges that were followed so far.
  std::uint64_t work() const { return work_; }

 private:
  using Stack = PathStacks::Stack;
  struct Path {
    Grammar::Node node = 0;
    Stack stack = 0;
    auto operator<=>(const Path&) const = default;
  };
  static constexpr State unknown = -2;
  struct StateData {
    std::uint32_t first = 0, size = 0;  // of paths_, sorted; each node reads a byte
    std::int32_t row = -1;              // of rows_
    State within = unknown;             // where within() was asked
    bool accepts = false;
  };

  std::span<const Path> paths(State state) const;
  State compute(State state, unsigned char byte);
  void follow_end(Path path);
  void follow_edge(const Grammar::Edge& edge, Stack stack);
  void repeat(std::int32_t edge, std::int32_t count, Stack below);
  Stack push(Grammar::Node node, Stack below);
  void closure();
  void prune();
  std::size_t prune_alike(std::size_t first, std::size_t last, std::size_t kept);
  State number_of_state(bool accepts);
  void charge(std::uint64_t work);
  void account();
  [[noreturn]] void too_ambiguous() const;

  Grammar grammar_;
  AutomatonLimits limits_;
  std::int32_t classes_;  // of bytes
  PathStacks stacks_;
  std::vector<Path> paths_;
  std::vector<StateData> states_;
  std::vector<State> rows_;  // transitions by class of bytes
  std::unordered_multimap<std::uint64_t, State> by_hash_;
  std::size_t within_length_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t work_ = 0;
  State start_ = 0;
  // Of the state that is made:
  std::vector<Path> open_, found_;
  bool accepts_ = false;
  PairSet visited_;
};

}  // namespace troupe::engine::constraints

// Automaton: runs a grammar byte by byte. A state is the set of all paths through the grammar that
// agree with the bytes so far, each a node with a stack of the nodes to return to; states and
// stacks are numbered when they are first reached, so that a known transition is a look-up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/constraints/grammar.h"

namespace troupe::engine::constraints {

/// Bounds of the run of one grammar.
struct AutomatonLimits {
  std::size_t paths = 2048;                   ///< in a state
  std::size_t bytes = std::size_t{64} << 20;  ///< of all states
};

class Automaton {
 public:
  using State = std::int32_t;
  static constexpr State dead = -1;

  /// `grammar`: finished. Throws as step() does.
  Automaton(Grammar grammar, AutomatonLimits limits);

  State start() const { return start_; }
  /// The state after one more byte; dead when no text continues so. Throws Failure (Errc::full)
  /// beyond the limits.
  State step(State state, unsigned char byte);
  /// Whether the bytes so far are a whole text of the grammar.
  bool accepts(State state) const { return states_[static_cast<std::size_t>(state)].accepts; }
  /// Whether no byte may follow.
  bool ends(State state) const { return states_[static_cast<std::size_t>(state)].paths.empty(); }
  std::size_t bytes() const { return bytes_; }

 private:
  using Stack = std::int32_t;  // 0: empty
  struct Path {
    Grammar::Node node = 0;
    Stack stack = 0;
    auto operator<=>(const Path&) const = default;
  };
  struct StateData {
    std::vector<Path> paths;  // sorted; each node reads a byte
    bool accepts = false;
    std::unique_ptr<std::array<State, 256>> next;
  };
  static constexpr State unknown = -2;

  void visit(Path path, std::vector<Path>& open);
  StateData closure(std::vector<Path> open);
  [[noreturn]] void too_ambiguous() const;
  State close(std::vector<Path> open);
  Stack push(Grammar::Node node, Stack below);
  void account(std::size_t bytes);

  Grammar grammar_;
  AutomatonLimits limits_;
  std::vector<StateData> states_;
  std::unordered_multimap<std::uint64_t, State> by_hash_;
  std::vector<Path> stacks_;  // top node and the stack below; [0] is unused
  std::unordered_map<std::uint64_t, Stack> stack_numbers_;
  std::size_t bytes_ = 0;
  State start_ = 0;
};

}  // namespace troupe::engine::constraints

// Constraint: the tokens that may follow in an output that a grammar describes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/constraints/automaton.h"
#include "engine/constraints/token_table.h"

namespace troupe::engine::constraints {

/// A mask of one constraint that is computed in parts.
class MaskWalk {
 private:
  friend class Constraint;
  Automaton::State state = Automaton::dead;
  std::size_t at = 0;                  // of the nodes of the token table
  std::vector<Automaton::State> path;  // by depth
  TokenMask mask{0};
};

/// Serves any number of sequences, all in one thread: states and masks are computed when they are
/// first needed and kept. States that differ only in repetitions that no token reaches share a
/// mask. bytes() and work() may be called from any thread.
class Constraint {
 public:
  using State = Automaton::State;

  /// `grammar`: finished. Throws as Automaton does.
  Constraint(Grammar grammar, std::shared_ptr<const TokenTable> tokens,
             AutomatonLimits limits = {});

  State start() const { return automaton_.start(); }
  /// The state after a token. Automaton::dead when the token was not allowed. Throws Failure
  /// (Errc::full) beyond the limits.
  State after(State state, std::int32_t token);
  /// Tokens that may follow, without end tokens; kept while used. Throws as after() does.
  std::shared_ptr<const TokenMask> allowed(State state);
  /// The same in parts: nullptr when `budget` is used up, which is reduced by the work, in nodes of
  /// the token table and in paths and edges of the grammar. A later call continues where this
  /// one ended, if it has the same state and walk.
  std::shared_ptr<const TokenMask> allowed(State state, MaskWalk& walk, std::uint64_t& budget);
  /// Whether the output may end here, and whether it must.
  bool may_end(State state) const { return automaton_.accepts(state); }
  bool must_end(State state) const { return automaton_.ends(state); }
  const TokenTable& tokens() const { return *tokens_; }
  /// Of grammar, states and masks.
  std::size_t bytes() const { return bytes_; }
  /// The part of AutomatonLimits::work that is used.
  double used_work() const { return used_work_; }

 private:
  bool advance(MaskWalk& walk, std::uint64_t& budget);
  void keep(State state, std::shared_ptr<const TokenMask> mask);
  void publish();

  Automaton automaton_;
  std::shared_ptr<const TokenTable> tokens_;
  std::uint64_t work_limit_;
  std::unordered_map<State, std::shared_ptr<const TokenMask>> masks_;
  std::size_t mask_bytes_ = 0;
  std::atomic<std::size_t> bytes_ = 0;
  std::atomic<double> used_work_ = 0;
};

}  // namespace troupe::engine::constraints

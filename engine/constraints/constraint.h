// Constraint: the tokens that may follow in an output that a grammar describes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/constraints/automaton.h"
#include "engine/constraints/token_table.h"

namespace troupe::engine::constraints {

/// Serves any number of sequences, all in one thread: states and masks are computed when they are
/// first needed and kept. bytes() may be called from any thread.
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
  /// Whether the output may end here, and whether it must.
  bool may_end(State state) const { return automaton_.accepts(state); }
  bool must_end(State state) const { return automaton_.ends(state); }
  const TokenTable& tokens() const { return *tokens_; }
  std::size_t bytes() const { return bytes_; }

 private:
  TokenMask make_mask(State state);

  Automaton automaton_;
  std::shared_ptr<const TokenTable> tokens_;
  std::unordered_map<State, std::shared_ptr<const TokenMask>> masks_;
  std::size_t mask_bytes_ = 0;
  std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace troupe::engine::constraints

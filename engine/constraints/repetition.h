// Repetitions of a rule.
#pragma once

#include <optional>

#include "engine/constraints/grammar.h"

namespace troupe::engine::constraints {

/// Bound of a count.
inline constexpr int max_repetitions = 65'536;

struct Repetitions {
  int least = 0;
  std::optional<int> most;  ///< nothing: any number
};

/// Adds `counts` repetitions of `rule` behind `from` and returns the node behind them.
Grammar::Node add_repeated(Grammar& grammar, Grammar::Node from, Grammar::Rule rule,
                           Repetitions counts);

}  // namespace troupe::engine::constraints

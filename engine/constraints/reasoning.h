// Reasoning before a constrained text: anything between <think> and the first </think>.
#pragma once

#include <cstdint>

#include "engine/constraints/grammar.h"

namespace troupe::engine::constraints {

/// What stands before a text: nothing, reasoning whose <think> is part of the prompt, or either
/// reasoning with its <think> or nothing.
enum class Reasoning : std::uint8_t { none, open, optional };

/// Returns a rule for the texts of `rule` with that before them.
Grammar::Rule add_reasoning(Grammar& grammar, Grammar::Rule rule, Reasoning before);

}  // namespace troupe::engine::constraints

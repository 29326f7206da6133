// Distribution: from one row of logits to the tokens that may be drawn, by a chain of small steps
// in transformers' order: penalties and bans, temperature, top-h, top-k, top-p, min-p, typical,
// epsilon, eta (generation/utils.py, _get_logits_processor). All in f64.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/generate/logits_processors.h"

namespace troupe::engine::generate {

/// Tokens that may be drawn, in rising order of id, and their renormalised probabilities.
struct Distribution {
  std::vector<std::int32_t> ids;
  std::vector<double> probabilities;
};

/// Penalties and, unless greedy, filters. `logits` [V] must be finite (first_not_finite). A row
/// whose every token is banned is a Failure (Errc::usage).
Row process(std::span<const float> logits, const Context& context);
Row process(std::span<const double> logits, const Context& context);
Distribution normalise(const Row& row);
/// Penalties and bans alone, over log-probabilities as beam search has them; `kept` may be empty
/// then.
Row penalise(std::vector<double> scores, const Context& context);

/// The token that `u` in [0, 1) falls on when the probabilities are laid end to end in the order of
/// ids.
std::int32_t draw(const Distribution& distribution, double u);
/// The largest score, the lowest id among equals.
std::int32_t argmax(const Row& row);
/// argmax when greedy, else draw with uniform(seed, sample_id, position); position is the new
/// token's place in its sequence. Rows that no rule changes take the shortcuts of shortcut.h.
std::int32_t choose(std::span<const float> logits, const Context& context, std::uint64_t sample_id);

}  // namespace troupe::engine::generate

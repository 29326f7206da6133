// Distribution: from one row of logits to the tokens that may be drawn, by a chain of small steps
// in transformers' order: penalties and bans, temperature, top-h, top-k, top-p, min-p, typical,
// epsilon, eta (generation/utils.py, _get_logits_processor). All in f64.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/generate/sampling.h"

namespace troupe::engine::generate {

/// What a step may look at beside the logits.
struct Context {
  const SamplingParams& params;
  std::span<const std::int32_t> tokens;  ///< prompt and output so far
  std::size_t prompt_length = 0;         ///< tokens[prompt_length..] were generated
  std::span<const std::int32_t> ends;    ///< end and stop tokens, banned before min_new_tokens
  std::size_t limit =
      0;  ///< tokens of prompt and output at most; 0: not known, and nothing is forced as the last
};

/// A row of logits on its way through the chain. `kept` only shrinks, stays in rising order, and
/// never becomes empty in a filter.
struct Row {
  std::vector<double> score;       ///< [V]
  std::vector<std::int32_t> kept;  ///< ids that may still be drawn
};

/// One rule. A new rule is one function and one line in penalties() or filters().
using Step = void (*)(Row&, const Context&);
std::span<const Step> penalties();  ///< for greedy and for sampled decoding, and for beams: bias,
                                    ///< repetition, bans, forced tokens
std::span<const Step> filters();    ///< for sampled decoding: what is too unlikely

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

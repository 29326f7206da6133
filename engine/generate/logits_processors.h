// Logits processors: the steps that turn one row of logits into the tokens that may be sampled, in
// transformers' order: penalties and bans, temperature, top-h, top-k, top-p, min-p, typical,
// epsilon, eta (generation/utils.py, _get_logits_processor). Semantics of transformers'
// generation/logits_process.py (classes ...LogitsProcessor and ...LogitsWarper); frequency and
// presence penalties are the OpenAI API's. All in f64.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/generate/sampling_params.h"

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

/// Probabilities of row.kept, in its order; they add up to 1.
std::vector<double> probabilities(const Row& row);

}  // namespace troupe::engine::generate

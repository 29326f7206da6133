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

namespace troupe::engine::constraints {
class TokenMask;
}

namespace troupe::engine::generate {

/// Input of a logits processor besides the logits.
struct ProcessorContext {
  const SamplingParams& params;
  std::span<const std::int32_t> tokens;  ///< prompt and output so far
  std::size_t prompt_length = 0;         ///< tokens[prompt_length..] were generated
  std::span<const std::int32_t> ends;    ///< end and stop tokens, banned before min_new_tokens
  std::size_t limit = 0;  ///< maximum tokens of prompt and output; 0: unknown, no forced last token
  const constraints::TokenMask* allowed = nullptr;  ///< of a constrained output; nullptr: all
  /// Tokens that every filter but top-h keeps: with beams, more than there are end tokens
  /// (transformers' min_tokens_to_keep).
  std::size_t min_kept = 1;
};

/// A row of logits during processing. `kept` only shrinks, stays in ascending order, and never
/// becomes empty in a filter.
struct LogitsRow {
  std::vector<double> score;       ///< [V]
  std::vector<std::int32_t> kept;  ///< ids that may still be sampled
};

/// A processor. A new one is one function and one line in penalties() or filters().
using LogitsProcessor = void (*)(LogitsRow&, const ProcessorContext&);
/// Bias, repetition penalties, bans and forced tokens; for greedy decoding, sampling and beam
/// search.
std::span<const LogitsProcessor> penalties();
/// Filters of unlikely tokens; for sampling only, with beams as well.
std::span<const LogitsProcessor> filters();

/// Probabilities of row.kept, in its order; they add up to 1.
std::vector<double> probabilities(const LogitsRow& row);

}  // namespace troupe::engine::generate

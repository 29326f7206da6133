// Scores of the tokens of a prompt under the model, without generating: OpenAI's `echo` with
// `logprobs`, vLLM's `prompt_logprobs`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/generate/generator.h"
#include "engine/models/decoder.h"

namespace troupe::engine::generate {

/// Entry t belongs to token t given the tokens before it; the first entry is 0 and without
/// alternatives.
struct PromptScores {
  std::vector<float> logp;                    ///< [T] at temperature 1
  std::vector<std::vector<Alternative>> top;  ///< [T], empty without alternatives
};

/// One forward pass over `tokens` [T], T at least 1, each in the vocabulary. The log-probabilities
/// have the bits of train::logprobs(). Throws Failure (Errc::bad_input) when a logit is not finite.
/// Collective over the decoder's tensor-parallel group.
PromptScores score_prompt(models::Decoder& decoder, ops::Precision precision,
                          std::span<const std::int32_t> tokens, int alternatives);

}  // namespace troupe::engine::generate

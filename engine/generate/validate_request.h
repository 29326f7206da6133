// Validation of requests, for the generator and for beam search.
#pragma once

#include <span>
#include <vector>

#include "engine/generate/generator.h"

namespace troupe::engine::generate {

/// Errc::usage or bad_input for invalid params (validate()), stop strings without a TextDecoder, an
/// empty prompt or one of max_positions tokens or more, ids outside the vocabulary.
Result<> validate_request(const Request& request, const models::DecoderSpec& spec, bool has_text);

/// Tokens that end an output: stop_tokens and, unless ignore_eos, eos_ids.
std::vector<std::int32_t> end_tokens(const SamplingParams& params,
                                     const std::vector<std::int32_t>& eos_ids);

/// Throws Failure(bad_input) when a logit of `row` is not finite; `position`: index of the next
/// token in its sequence, for the message.
void require_finite_logits(std::span<const float> row, const Request& request,
                           std::size_t position);

}  // namespace troupe::engine::generate

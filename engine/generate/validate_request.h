// What a request must be to be answered at all, by the generator or by a beam search.
#pragma once

#include <span>
#include <vector>

#include "engine/generate/generator.h"

namespace troupe::engine::generate {

/// Refuses params that validate() refuses, stop strings without a decoder of text, an empty prompt
/// or one that leaves no room before max_positions, ids outside the vocabulary. Errc::usage,
/// bad_input.
Result<> check_request(const Request& request, const models::DecoderSpec& spec, bool has_text);

/// Tokens that end an output.
std::vector<std::int32_t> ends_of(const SamplingParams& params,
                                  const std::vector<std::int32_t>& eos_ids);

/// Failure(bad_input) where a logit of `row` is not finite; `position` is the place of the token
/// that was to follow.
void refuse_not_finite(std::span<const float> row, const Request& request, std::size_t position);

}  // namespace troupe::engine::generate

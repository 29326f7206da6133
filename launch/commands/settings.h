// Sampling settings that a line of `troupe generate` may carry; they win over the options of the command line.
#pragma once

#include "engine/base/json.h"
#include "engine/generate/sampling.h"

namespace troupe::launch {

/// Reads temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, max_new_tokens, seed, stop (a text or a list) and
/// top_logprobs where the line has them; other members are not looked at. A temperature or a filter turns greedy off.
/// Errc::bad_input.
Result<> read_settings(const Json& line, engine::generate::SamplingParams& sampling);

}  // namespace troupe::launch

// Reading SamplingParams from JSON, by the names of transformers and the OpenAI API.
#pragma once

#include <string_view>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/generate/sampling_params.h"

namespace troupe::engine::generate {

/// The name of a parameter in SamplingParams::each_field() for a name of it elsewhere: "max_tokens"
/// of OpenAI is max_new_tokens, "bad_words_ids" of transformers bad_words. Other names are their
/// own.
std::string_view sampling_param_named(std::string_view name);

/// Sets the parameter `key`; null leaves it unchanged. False: SamplingParams has no such parameter.
/// Errc::bad_input for values of the wrong type or out of their range, by the key.
///
/// Known: those of SamplingParams::each_field() with their aliases, and encoder_repetition_penalty,
/// encoder_no_repeat_ngram_size, do_sample, num_beams, length_penalty, early_stopping (true, false,
/// "never"), num_return_sequences, renormalize_logits, logit_bias ({"id": bias}),
/// begin_suppress_tokens, forced_bos_token_id, forced_eos_token_id,
/// exponential_decay_length_penalty ([start, factor]), stop_token_ids, top_logprobs, seed.
Result<bool> read_sampling_param(std::string_view key, const Json& value, SamplingParams& params);

/// The keys that read_sampling_param() knows.
std::vector<std::string_view> sampling_param_names();

/// Whether the parameter has an effect only when sampling.
bool requires_sampling(std::string_view key);

}  // namespace troupe::engine::generate

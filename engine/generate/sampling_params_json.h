// Reading SamplingParams from JSON, by the names of transformers and the OpenAI API.
#pragma once

#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/generate/sampling_params.h"

namespace troupe::engine::generate {

/// Sets the parameter `key`; null leaves it unchanged. False: SamplingParams has no such parameter.
/// Values of the wrong type and integers out of range are Errc::bad_input; validate() checks the
/// rest.
///
/// Known: temperature, top_k, top_p, min_p, typical_p, epsilon_cutoff, eta_cutoff, top_h,
/// repetition_penalty, presence_penalty, frequency_penalty, no_repeat_ngram_size,
/// encoder_repetition_penalty, encoder_no_repeat_ngram_size, max_new_tokens or max_tokens,
/// min_new_tokens, do_sample, num_beams, length_penalty, early_stopping (true, false, "never"),
/// num_return_sequences, renormalize_logits, bad_words_ids, sequence_bias (a list of [ids, bias]),
/// logit_bias ({"id": bias}), suppress_tokens, begin_suppress_tokens, forced_bos_token_id,
/// forced_eos_token_id, exponential_decay_length_penalty ([start, factor]), stop or stop_strings (a
/// text or a list), stop_token_ids, ignore_eos, top_logprobs, seed.
Result<bool> read_sampling_param(std::string_view key, const Json& value, SamplingParams& params);

/// The keys that read_sampling_param() knows.
std::vector<std::string_view> sampling_param_names();

/// Whether the parameter has an effect only when sampling.
bool requires_sampling(std::string_view key);

}  // namespace troupe::engine::generate

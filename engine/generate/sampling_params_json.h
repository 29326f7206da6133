// Settings by the names that transformers and the OpenAI API have for them, from JSON into
// SamplingParams.
#pragma once

#include <string_view>

#include "engine/base/json.h"
#include "engine/generate/sampling_params.h"

namespace troupe::engine::generate {

/// Stores a setting. True: `key` is one that SamplingParams has; a null value then leaves it as it
/// was. False: it is not. Values of the wrong type, and integers that do not fit, are
/// Errc::bad_input; validate() judges the rest.
///
/// Known: temperature, top_k, top_p, min_p, typical_p, epsilon_cutoff, eta_cutoff, top_h,
/// repetition_penalty, presence_penalty, frequency_penalty, no_repeat_ngram_size,
/// encoder_repetition_penalty, encoder_no_repeat_ngram_size, max_new_tokens, min_new_tokens,
/// do_sample, num_beams, length_penalty, early_stopping (true, false, "never"),
/// num_return_sequences, renormalize_logits, bad_words_ids, sequence_bias (a list of [ids, bias]),
/// logit_bias ({"id": bias}), suppress_tokens, begin_suppress_tokens, forced_bos_token_id,
/// forced_eos_token_id, exponential_decay_length_penalty ([start, factor]), stop or stop_strings (a
/// text or a list), stop_token_ids, ignore_eos, top_logprobs, seed.
Result<bool> read_setting(std::string_view key, const Json& value, SamplingParams& params);

/// Settings that mean something only where tokens are drawn.
bool asks_to_draw(std::string_view key);

}  // namespace troupe::engine::generate

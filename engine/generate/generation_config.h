// generation_config.json of a Hugging Face folder: what tools draw with unless they are told
// otherwise, and end tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/generate/sampling_params.h"

namespace troupe::engine::generate {

struct GenerationConfig {
  /// Settings of the file; greedy unless do_sample is true; max_new_tokens is 0 where it has none.
  /// Settings that it lacks are neutral, but for transformers' top_k of 50 where do_sample is true.
  SamplingParams params;
  std::int32_t max_length = 0, min_length = 0;  ///< of prompt and output together; 0: not there.
                                                ///< max_new_tokens, min_new_tokens win
  std::vector<std::int32_t> eos_ids;            ///< eos_token_id, one or a list
  std::vector<std::string>
      ignored;  ///< members that transformers does not know either, or that bound its time alone
};

/// Reads the file's content. `where` is its path, for messages. Errc::bad_input for values of the
/// wrong type; unsupported, by name, for settings that are on, would change the output, and that
/// troupe does not have (guidance_scale, ...).
Result<GenerationConfig> read_generation_config(const Json& file, const std::string& where);

/// Turns lengths of prompt and output together into lengths of the output; where neither is set, at
/// most `otherwise` tokens. Errc::usage when the prompt alone is as long as max_length.
Result<SamplingParams> for_prompt(SamplingParams params, const GenerationConfig& config,
                                  std::size_t prompt_length, std::int32_t otherwise);

}  // namespace troupe::engine::generate

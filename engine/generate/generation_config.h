// generation_config.json of a Hugging Face folder: default sampling parameters and end tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/generate/sampling_params.h"

namespace troupe::engine::generate {

struct GenerationConfig {
  /// Settings of the file; greedy unless do_sample is true; max_new_tokens is 0 where absent.
  /// Absent settings are neutral, except transformers' top_k of 50 where do_sample is true.
  SamplingParams params;
  /// Lengths of prompt and output; 0: absent. max_new_tokens and min_new_tokens take precedence.
  std::int32_t max_length = 0, min_length = 0;
  std::vector<std::int32_t> eos_ids;  ///< eos_token_id, one or a list
  std::vector<std::string> ignored;   ///< unknown members
};

/// Reads the file's content. `where` is its path, for messages. Errc::bad_input for values of the
/// wrong type; unsupported for active settings that troupe does not have and that would change the
/// output (guidance_scale, ...).
Result<GenerationConfig> read_generation_config(const Json& file, const std::string& where);

/// Errc::usage if `key`, of the settings of one prompt, is a setting of the file only.
Result<> refuse_file_setting(std::string_view key, const Json& value);

/// Converts max_length and min_length to limits of the output for a prompt; `otherwise`: the
/// default of max_new_tokens. Errc::usage when the prompt has max_length tokens or more.
Result<SamplingParams> for_prompt(SamplingParams params, const GenerationConfig& config,
                                  std::size_t prompt_length, std::int32_t otherwise);

}  // namespace troupe::engine::generate

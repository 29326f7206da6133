// generation_config.json of a Hugging Face folder: sampling defaults, used only where the caller asks for them, and end tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/generate/sampling.h"

namespace troupe::engine::generate {

struct GenerationConfig {
  SamplingParams params;  ///< settings of the file; greedy unless do_sample is true; settings it lacks are neutral (no top-k of 50)
  std::vector<std::int32_t> eos_ids;  ///< eos_token_id, one or a list
  std::vector<std::string> ignored;   ///< settings that are there, would change the output, and are not honoured (num_beams, ...)
};

/// Reads the file's content. `where` is its path, for messages. Errc::bad_input for values of the wrong type.
Result<GenerationConfig> read_generation_config(const Json& file, const std::string& where);

}  // namespace troupe::engine::generate

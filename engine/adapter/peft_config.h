// adapter_config.json, read and written (PEFT's LoraConfig, versions 0.5 to 0.21).
#pragma once

#include <string>

#include "engine/adapter/lora_config.h"
#include "engine/base/json/json.h"

namespace troupe::engine::adapter {

/// Reads adapter_config.json. Rejects unsupported settings that would change the results, by name.
/// Errc::bad_input, unsupported.
Result<LoraConfig> read_peft_config(const Json& config, const std::string& where);

/// Returns the adapter_config.json of an adapter of this model. `base`: the value of
/// base_model_name_or_path.
Json to_peft_config(const LoraConfig& config, const models::DecoderSpec& spec,
                    const std::string& base);

}  // namespace troupe::engine::adapter

// Members of tokenizer files that this library does not know, which would change ids unseen.
#pragma once

#include <string>

#include "engine/base/json.h"

namespace troupe::engine::tokenizer {

/// Errc::unsupported, with the member's name, if a tokenizer.json has a member that is not null and
/// that no component of the tokenizers library 0.23 has. `where` starts the message.
Result<> check_known_members(const Json& file, const std::string& where);

/// Errc::unsupported for settings of tokenizer_config.json that change ids and are not applied:
/// split_special_tokens, and sampling in sp_model_kwargs.
Result<> check_config_settings(const Json& config, const std::string& where);

}  // namespace troupe::engine::tokenizer

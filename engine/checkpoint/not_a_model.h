// Why a path is not a model directory, and what to do: a folder that does not exist, a name of a
// model on Hugging Face, a LoRA adapter.
#pragma once

#include <string>

namespace troupe::engine::checkpoint {

/// The base that the adapter in `folder` names (base_model_name_or_path), or "".
std::string named_base(const std::string& folder);

/// Whether `path` looks like "org/name", a model on Hugging Face, and "org" neither is a local
/// folder nor has the usual name of one, such as "models".
bool is_hub_name(const std::string& path);

/// "no such directory; ..." for a path without config.json.
std::string why_not_a_model(const std::string& path);

}  // namespace troupe::engine::checkpoint

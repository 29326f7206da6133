// The flags that describe a model: compared with its config.json, or, where there is none, the
// source of it.
#pragma once

#include <string>

#include "engine/base/json/json.h"
#include "launch/tools/megatron/config_fields.h"
#include "launch/tools/megatron/flags.h"

namespace troupe::launch::tools::megatron {

/// Compares every flag that describes the model with config.json at `path`. Returns the values that
/// count in place of those of the file: a longer --max-position-embeddings, and those of
/// replaced_values(). Errc::usage with all contradictions, each with both values; errors of reading
/// the file.
Result<Replaced> check_architecture(const CommandLine& line, const std::string& path);

/// The config.json of a Llama, Qwen2 (--add-qkv-bias) or Qwen3 (--qk-layernorm) with these sizes.
/// Errc::usage: flags that are missing, or that describe another model than one of these.
Result<Json> config_of_flags(const CommandLine& line);

}  // namespace troupe::launch::tools::megatron

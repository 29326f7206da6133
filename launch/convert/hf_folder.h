// Writing a Hugging Face folder from the parameters of a model, one tensor at a time.
#pragma once

#include <optional>
#include <string>

#include "engine/base/error.h"
#include "engine/checkpoint/megatron/weight_source.h"
#include "engine/models/spec.h"

namespace troupe::launch {

/// Writes the weights as safetensors (shards of 5 GB with an index, as transformers), config.json
/// and the tokenizer's files of `original` into the new folder `folder`. `type`: of all weights,
/// and of config.json; none: as in the source. The folder gets its name when it is complete.
/// Errc::usage (the folder exists), io, and errors of the source.
Result<> write_hf_folder(const std::string& folder, const std::string& original,
                         const engine::models::DecoderSpec& spec,
                         const engine::checkpoint::WeightSource& source,
                         std::optional<engine::checkpoint::StoredType> type);

}  // namespace troupe::launch

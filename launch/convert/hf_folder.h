// Writing a Hugging Face folder from the parameters of a model, one tensor at a time.
#pragma once

#include <optional>
#include <string>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/checkpoint/megatron/weight_source.h"
#include "engine/models/spec.h"

namespace troupe::launch {

struct HfOutput {
  std::string folder;    ///< new
  std::string original;  ///< whose tokenizer's files it gets
  std::string config;    ///< text of config.json
  /// Of all weights, and of config.json; none: as in the source.
  std::optional<engine::checkpoint::StoredType> type;
  Json conversion;  ///< what determines the bytes (progress.h)
};

/// Writes the weights as safetensors (shards of 5 GB with an index, as transformers). The folder
/// gets its name when it is complete; FOLDER.partial of the same conversion keeps its complete
/// shards. Errc::usage (the folder exists), io, and errors of the source.
Result<> write_hf_folder(const engine::models::DecoderSpec& spec,
                         const engine::checkpoint::WeightSource& source, const HfOutput& output);

}  // namespace troupe::launch

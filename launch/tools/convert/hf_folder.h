// Writing a Hugging Face folder from the parameters of a model, one tensor at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/megatron/weight_source.h"
#include "engine/checkpoint/result_folder.h"
#include "engine/models/spec.h"

namespace troupe::launch::tools::convert {

struct HfOutput {
  engine::checkpoint::ResultFolder& folder;
  std::string original;  ///< whose tokenizer's files it gets
  std::string config;    ///< text of config.json
  /// Of all weights, and of config.json; none: as in the source.
  std::optional<engine::checkpoint::StoredType> type;
  /// Called with the path of each file of weights that has been written.
  std::function<void(const std::string&)> written;
};

/// Writes the weights as safetensors (shards of 5 GB with an index, as transformers), config.json
/// and the tokenizer's files. Errc::io, and errors of the source and of the folder.
Result<> write_hf_folder(const engine::models::DecoderSpec& spec,
                         const engine::checkpoint::WeightSource& source, const HfOutput& output);

}  // namespace troupe::launch::tools::convert

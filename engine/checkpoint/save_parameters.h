// Writing the weights of a model as a folder in the Hugging Face layout: one file or shards
// (huggingface_hub's split_torch_state_dict_into_shards), config.json, and the files beside it.
#pragma once

#include <cstddef>
#include <string>

#include "engine/base/error.h"
#include "engine/checkpoint/stored_type.h"
#include "engine/nn/logical_tensors.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::checkpoint {

struct SaveOptions {
  /// The model folder that the weights started from: its config.json (with dtype and
  /// tie_word_embeddings brought up to date), generation_config.json and tokenizer files are
  /// copied. Empty: weights only.
  std::string source;
  bool tied = false;                  ///< the head is the embedding, and is not stored
  StoredType type = StoredType::f32;  ///< f32 keeps every bit; bf16, f16 round
  std::size_t shard_bytes =
      5000000000;  ///< a larger model becomes several files and an index, as transformers does
};

/// Writes the parameters into the existing folder `folder`, as the source's family stores them, in
/// the layout that transformers and others load. An adapter's are left out. Equal parameters and
/// sources give equal bytes. Files are durable; existing ones are never overwritten. Errc::io,
/// bad_input.
Result<> save_parameters(const std::string& folder, const nn::Parameters& parameters,
                         const SaveOptions& options);
/// The same for parameters that several ranks hold in parts; arena 0 of `tensors` are the values.
/// The other ranks serve().
Result<> save_parameters(const std::string& folder, nn::LogicalTensors& tensors,
                         const SaveOptions& options);

}  // namespace troupe::engine::checkpoint

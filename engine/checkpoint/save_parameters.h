// Writing the weights of a model as a folder in the Hugging Face layout: one file or shards
// (huggingface_hub's split_torch_state_dict_into_shards), config.json, and the files beside it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "engine/checkpoint/stored_type.h"
#include "engine/checkpoint/tensor_parts.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::checkpoint {

/// Texts in place of the files of the model that is saved; empty: the file itself.
struct CompanionTexts {
  std::string chat_template;  ///< chat_template.jinja
  std::string tokenizer;      ///< tokenizer.json
};

struct SaveOptions {
  /// Model folder that the weights started from: config.json (with dtype and tie_word_embeddings
  /// updated), generation_config.json and tokenizer files are copied. Empty: weights only.
  std::string source;
  Json overrides;                     ///< values of config.json, as for read_folder_spec()
  bool tied = false;                  ///< the head is tied to the embedding and not stored
  StoredType type = StoredType::f32;  ///< f32 keeps every bit; bf16, f16 round
  /// A larger model is split into several files with an index, as in transformers.
  std::size_t shard_bytes = 5000000000;
  CompanionTexts texts;
  std::size_t arena = 0;  ///< of the TensorParts, which has the values
};

/// Writes the parameters, without those of adapters, into the existing folder `folder`, in the
/// layout of the source's family. Equal parameters and sources give equal bytes. Files are durable;
/// existing ones are never overwritten. Errc::io, bad_input.
Result<> save_parameters(const std::string& folder, const nn::Parameters& parameters,
                         const SaveOptions& options);
/// Overload for parameters that are split over several ranks: each rank writes its part.
/// Collective.
Result<> save_parameters(const std::string& folder, TensorParts& tensors,
                         const SaveOptions& options);

/// A file and its content.
struct Companion {
  std::string name, content;
};
/// generation_config.json, the tokenizer files and the chat template of the model folder `source`,
/// those that exist, or the texts in their place. Errc::io.
Result<std::vector<Companion>> companions_of(const std::string& source,
                                             const CompanionTexts& texts = {});
/// Writes companions_of() the source into `folder`, durably. Errc::io.
Result<> copy_companions(const std::string& folder, const std::string& source,
                         const CompanionTexts& texts = {});

}  // namespace troupe::engine::checkpoint

// Loading the weights of a model folder in the Hugging Face layout into nn::Parameters. Names and
// layout are those of the family in the folder's config.json (models/storage.h); without a
// config.json, those of the parameters.
#pragma once

#include <string>

#include "engine/base/errors/error.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::checkpoint {

struct LoadOptions {
  /// The head is tied to the embedding (config.json's tie_word_embeddings): the file may have
  /// either name, or both with equal values.
  bool tied = false;
  bool allow_nonfinite = false;
  /// All tensors of a model whose other layers are on other ranks (Decoder::whole()); nullptr:
  /// those that are read. The files are checked against them.
  const nn::Parameters* whole = nullptr;
  bool fresh_score = false;  ///< do not read the score head: the folder has a language model
};

/// Reads this rank's part of every parameter, except those of adapters, from the weights of
/// `folder`, converted to f32. Rejects missing tensors, other shapes, unexpected tensors (other
/// than buffers that transformers recomputes, and the language head where the model has a score
/// head), and NaN or infinity unless allowed; after an error the values of `into` are undefined. A
/// score head may also be stored as "classifier". Errc::not_found, io, corrupt, bad_input,
/// unsupported.
Result<> load_parameters(const std::string& folder, nn::Parameters& into, LoadOptions options = {});

}  // namespace troupe::engine::checkpoint

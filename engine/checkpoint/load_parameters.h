// Weights of a model folder in the Hugging Face layout, into and out of nn::Parameters, under the
// names and in the layout of the family that the folder's config.json names (models/storage.h);
// without one, of the parameters.
#pragma once

#include <string>

#include "engine/base/error.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::checkpoint {

struct LoadOptions {
  /// The head is the embedding (config.json's tie_word_embeddings); either of the two names may
  /// then be the one that is stored, and if both are, they must be equal.
  bool tied = false;
  bool allow_nonfinite = false;
  bool fresh_score =
      false;  ///< the score head is not read: the weights are those of a language model
};

/// Reads every parameter but an adapter's, or this rank's part of it, from the weights of `folder`,
/// converted to f32. Refuses what is missing, what has another shape, what the model has no place
/// for (other than buffers that transformers recomputes, and the language head where the model has
/// a score head), and NaN or infinity unless allowed; the values of `into` are then undefined. A
/// score head may also be stored as "classifier". Errc::not_found, io, corrupt, bad_input,
/// unsupported.
Result<> load_parameters(const std::string& folder, nn::Parameters& into, LoadOptions options = {});

}  // namespace troupe::engine::checkpoint

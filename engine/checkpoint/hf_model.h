// Weights of a model folder in the Hugging Face layout, into and out of nn::Parameters. Parameters bear the checkpoint's own names.
#pragma once

#include <string>

#include "engine/base/error.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::checkpoint {

/// Reads every parameter from the weights of `folder`, converted to f32. `tied`: the head is the embedding (config.json's
/// tie_word_embeddings); either of the two names may then be the one that is stored, and if both are, they must be equal.
/// Refuses what is missing, what has another shape, what the model has no place for (other than buffers that transformers
/// recomputes), and NaN or infinity unless `allow_nonfinite`; the values of `into` are then undefined.
/// Errc::not_found, io, corrupt, bad_input, unsupported.
Result<> load_parameters(const std::string& folder, nn::Parameters& into, bool tied, bool allow_nonfinite = false);

}  // namespace troupe::engine::checkpoint

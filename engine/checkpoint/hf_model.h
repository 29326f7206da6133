// Weights of a model folder in the Hugging Face layout, into and out of nn::Parameters, under the
// names and in the layout of the family that the folder's config.json names (models/storage.h);
// without one, of the parameters.
#pragma once

#include <cstddef>
#include <string>

#include "engine/base/error.h"
#include "engine/checkpoint/stored_type.h"
#include "engine/nn/logical.h"
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

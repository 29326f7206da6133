// Loading a Decoder from a model folder in the Hugging Face layout (config.json, weights,
// generation_config.json).
#pragma once

#include <memory>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/models/decoder.h"

namespace troupe::engine::checkpoint {

/// Reads config.json, with values in place of its own (models/overrides.h), and adds the end tokens
/// of generation_config.json. Does not read weights.
Result<models::DecoderSpec> read_folder_spec(const std::string& folder,
                                             const Json& overrides = Json());

/// Loads a model, or with `part` this rank's part of it. Compares sizes with the weight files
/// before it allocates memory. Errc::not_found, io, corrupt, bad_input, unsupported; usage when the
/// model cannot be split so.
Result<std::unique_ptr<models::Decoder>> load_decoder(ops::Device& device,
                                                      const std::string& folder,
                                                      bool with_gradients,
                                                      const models::ModelPart& part = {});
/// Loads a model with a modified spec of read_folder_spec. An adapter may be added, whose values
/// are undefined. Where the folder has a language model, labels (and score_bias) may be set: a
/// score head of zeros then replaces the language head, to start a critic or reward model from a
/// policy.
Result<std::unique_ptr<models::Decoder>> load_decoder(ops::Device& device,
                                                      const std::string& folder,
                                                      models::DecoderSpec spec, bool with_gradients,
                                                      const models::ModelPart& part = {});

/// Initializes the weights of a score head from a normal distribution with mean 0, the bias with 0;
/// equal on every rank. transformers' standard deviation is 0.02 (initializer_range).
void init_score_head(models::Decoder& model, double std_dev, std::uint64_t seed);

}  // namespace troupe::engine::checkpoint

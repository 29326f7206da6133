// A model folder in the Hugging Face layout (config.json, weights, generation_config.json) to a
// Decoder that is ready to run.
#pragma once

#include <memory>
#include <string>

#include "engine/base/error.h"
#include "engine/models/decoder.h"

namespace troupe::engine::checkpoint {

/// config.json, with the end tokens of generation_config.json added to its own. No weights are
/// touched.
Result<models::DecoderSpec> read_folder_spec(const std::string& folder);

/// Sizes are compared with the weight files before anything is allocated. With `tp`, this rank's
/// part of the model. Errc::not_found, io, corrupt, bad_input, unsupported; usage, when the model
/// cannot be split so.
Result<std::unique_ptr<models::Decoder>> load_decoder(ops::Device& device,
                                                      const std::string& folder,
                                                      bool with_gradients,
                                                      parallel::Communicator* tp = nullptr);
/// The same with a spec that read_folder_spec gave and that may have an adapter now, whose values
/// are then undefined, or, where the folder has a language model, labels (score_bias): a score head
/// of zeros then takes the place of the language head, to begin a critic or a reward model from a
/// policy.
Result<std::unique_ptr<models::Decoder>> load_decoder(ops::Device& device,
                                                      const std::string& folder,
                                                      models::DecoderSpec spec, bool with_gradients,
                                                      parallel::Communicator* tp = nullptr);

/// The weights of a score head from a normal distribution around 0, the bias 0. transformers'
/// deviation is 0.02 (initializer_range). The same on every rank.
void draw_score_head(models::Decoder& model, double deviation, std::uint64_t seed);

}  // namespace troupe::engine::checkpoint

// A model folder in the Hugging Face layout (config.json, weights, generation_config.json) to a Decoder that is ready to run.
#pragma once

#include <memory>
#include <string>

#include "engine/base/error.h"
#include "engine/models/decoder.h"

namespace troupe::engine::checkpoint {

/// config.json, with the end tokens of generation_config.json added to its own. No weights are touched.
Result<models::DecoderSpec> read_folder_spec(const std::string& folder);

/// Sizes are compared with the weight files before anything is allocated. With `tp`, this rank's part of the model.
/// Errc::not_found, io, corrupt, bad_input, unsupported; usage, when the model cannot be split so.
Result<std::unique_ptr<models::Decoder>> load_decoder(ops::Device& device, const std::string& folder, bool with_gradients,
                                                      parallel::Communicator* tp = nullptr);

}  // namespace troupe::engine::checkpoint

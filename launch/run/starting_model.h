// The model that training begins with: the folder's own, or a language model under a fresh score
// head.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/models/decoder.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch {

/// Sets the spec of `folder` to what `wanted` trains. Errc::usage where the folder's model cannot
/// become that: a score head of another number of labels, or one where a language model is wanted.
Result<> want_head(engine::models::DecoderSpec& spec, const std::string& folder,
                   const ScoreHeadWanted& wanted);

/// With gradients. A fresh head depends on `seed` alone. Errors of load_decoder and of want_head.
Result<std::unique_ptr<engine::models::Decoder>> load_starting_model(
    engine::ops::Device& device, const std::string& folder, const ScoreHeadWanted& wanted,
    std::uint64_t seed, engine::parallel::Communicator* tp);

}  // namespace troupe::launch

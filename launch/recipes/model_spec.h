// The architectures of a run's models, with the values that replace those of config.json.
#pragma once

#include <string>

#include "engine/models/spec.h"
#include "launch/config/run_config.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch::recipes {

/// model_overrides where `folder` is the run's model, otherwise none. Checkpoints have them in
/// their config.json.
Json overrides_of(const config::RunConfig& config, const std::string& folder);

/// The architecture of a model folder (checkpoint::read_folder_spec) with its overrides.
Result<engine::models::DecoderSpec> spec_of(const config::RunConfig& config,
                                            const std::string& folder);

/// The score head that the algorithm trains; without labels it trains none.
ScoreHeadSpec head_of(const config::RunConfig& config);

/// Sets the spec of `folder` to what `wanted` trains. Errc::usage if the folder's model cannot
/// become that: it has a score head of a different size, or one where a language model is needed.
Result<> apply_head(engine::models::DecoderSpec& spec, const std::string& folder,
                    const ScoreHeadSpec& wanted);

/// The run's model with the score head that the algorithm trains.
Result<engine::models::DecoderSpec> base_spec(const config::RunConfig& config);

/// What the run trains: base_spec(), with its adapter.
Result<engine::models::DecoderSpec> trained_spec(const config::RunConfig& config);

}  // namespace troupe::launch::recipes

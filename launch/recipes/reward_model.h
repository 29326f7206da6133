// Reward models: the recipes of --algorithm orm (outcome) and prm (process).
#pragma once

#include <type_traits>

#include "engine/data/layouts/encode.h"
#include "engine/data/layouts/text_encoder.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch::recipes {

Recipe recipe_for(std::type_identity<algorithms::OrmConfig>);
Recipe recipe_for(std::type_identity<algorithms::PrmConfig>);

/// Returns the settings for the tokenization of steps. Errc::usage for a placeholder or a reward
/// token that is not one token of this tokenizer.
Result<engine::data::StepOptions> step_settings(const config::RunConfig& config,
                                                const engine::data::TextEncoder& text);
/// `steps` from step_settings. Errc::usage: settings that the loss refuses.
Result<algorithms::PrmLoss> prm_settings(const config::RunConfig& config,
                                         const engine::data::StepOptions& steps);

}  // namespace troupe::launch::recipes

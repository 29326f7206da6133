// Process reward models as a run: the recipe of --algorithm prm.
#pragma once

#include "algorithms/losses/prm_loss.h"
#include "engine/data/encode.h"
#include "engine/data/text_encoder.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch {

Recipe prm_recipe();
std::vector<Preset> prm_dialects();

/// How rows become tokens. Errc::usage: a placeholder or a reward token that is not one token of
/// this tokenizer.
Result<engine::data::StepOptions> step_settings(const RunConfig& config,
                                                const engine::data::TextEncoder& text);
/// `steps` as step_settings gave them. Errc::usage: what the loss refuses.
Result<algorithms::PrmLoss> prm_settings(const RunConfig& config,
                                         const engine::data::StepOptions& steps);

}  // namespace troupe::launch

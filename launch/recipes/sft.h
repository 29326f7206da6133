// Supervised fine-tuning as a run: the recipe of --algorithm sft.
#pragma once

#include "algorithms/losses/sft_loss.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch {

Recipe sft_recipe();

/// Errc::usage: a word that is none of the known ones.
Result<algorithms::SftLoss> sft_settings(const RunConfig& config);

}  // namespace troupe::launch

// Direct preference optimization as a run: the recipe of --algorithm dpo.
#pragma once

#include "algorithms/preference.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch {

Recipe dpo_recipe();
std::vector<Preset> dpo_dialects();

/// Errc::usage: a word that is none of the known ones, or settings that contradict each other.
Result<algorithms::DpoConfig> dpo_settings(const RunConfig& config);

}  // namespace troupe::launch

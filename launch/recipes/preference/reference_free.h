// SimPO, CPO and ORPO as runs: preference without a reference.
#pragma once

#include "algorithms/preference.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch {

Recipe simpo_recipe();
Recipe cpo_recipe();
Recipe orpo_recipe();
std::vector<Preset> reference_free_dialects();

/// Errc::usage: settings that contradict each other, as of the two below.
Result<algorithms::SimpoLoss> simpo_settings(const RunConfig& config);
Result<algorithms::CpoLoss> cpo_settings(const RunConfig& config);
Result<algorithms::OrpoConfig> orpo_settings(const RunConfig& config);

}  // namespace troupe::launch

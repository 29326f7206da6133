// Group relative policy optimization: the recipe of --algorithm grpo and its presets.
#pragma once

#include <type_traits>

#include "launch/recipes/recipe.h"

namespace troupe::launch::recipes {

Recipe recipe_for(std::type_identity<algorithms::GrpoConfig>);

/// True if the policy recomputes the old log-probabilities: the ratios' denominator.
bool recomputes_old_logp(const config::RunConfig& config);

/// The settings of the algorithm: those of `grpo`, and what it needs of other sections.
/// Errc::usage: settings that contradict each other.
Result<algorithms::GrpoConfig> grpo_settings(const config::RunConfig& config);

}  // namespace troupe::launch::recipes

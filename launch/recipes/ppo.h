// Proximal policy optimization: the recipe of --algorithm ppo.
#pragma once

#include <type_traits>

#include "launch/recipes/recipe.h"

namespace troupe::launch::recipes {

Recipe recipe_for(std::type_identity<algorithms::PpoConfig>);

/// The settings of the algorithm: those of `ppo`, and what it needs of other sections. Errc::usage:
/// settings that contradict each other.
Result<algorithms::PpoConfig> ppo_settings(const config::RunConfig& config);
/// The learning rate of the critic over a run of `steps`.
Result<algorithms::CriticPlan> critic_plan(const config::RunConfig& config, std::int64_t steps);

}  // namespace troupe::launch::recipes

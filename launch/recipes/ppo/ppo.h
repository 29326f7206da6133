// Proximal policy optimization as a run: the recipe of --algorithm ppo.
#pragma once

#include "algorithms/ppo.h"
#include "engine/train/trainer.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch {

Recipe ppo_recipe();
std::vector<Preset> ppo_dialects();

std::span<const Field> ppo_fields();
std::string ppo_formula(const RunConfig& config);

/// Errc::usage: a word that is none of the known ones, or settings that contradict each other.
Result<algorithms::PpoConfig> ppo_settings(const RunConfig& config);
/// critic.*: how fast it learns over a run of `steps`.
Result<algorithms::CriticPlan> critic_plan(const RunConfig& config, std::int64_t steps);

}  // namespace troupe::launch

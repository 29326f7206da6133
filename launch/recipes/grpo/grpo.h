// Group relative policy optimization as a run: the recipe of --algorithm grpo, and the algorithms
// that are settings of it.
#pragma once

#include "algorithms/grpo.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch {

Recipe grpo_recipe();
std::vector<Preset> grpo_presets();
std::vector<Preset> grpo_dialects();

std::span<const Field> grpo_fields();
std::string grpo_formula(const RunConfig& config);
void judge_grpo(Judging& j);

/// The policy is asked for the log-probabilities that ratios start from.
bool asks_policy_again(const RunConfig& config);

/// Errc::usage: a word that is none of the known ones, or settings that contradict each other.
Result<algorithms::GrpoConfig> grpo_settings(const RunConfig& config);

}  // namespace troupe::launch

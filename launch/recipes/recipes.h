// The recipes that there are, and their presets. A new algorithm is one line in recipes.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/recipes/recipe.h"

namespace troupe::launch {

std::span<const Recipe> recipes();
/// Algorithms that are settings of a recipe.
std::span<const Preset> algorithm_presets();
/// Tools' ways: one name may stand for several recipes.
std::span<const Preset> dialects();

/// Every name that --algorithm takes.
std::vector<std::string> algorithm_names();
/// The recipe behind a name, or nullptr.
const Recipe* find_recipe(std::string_view algorithm);
/// Of a configuration that was judged before: its algorithm is one of those that there are.
const Recipe& recipe_of(const RunConfig& config);
RolesNeeded roles_of(const RunConfig& config);
/// The preset of that name, or nullptr.
const Preset* find_preset(std::string_view algorithm);
const Preset* find_dialect(std::string_view dialect, std::string_view recipe);

}  // namespace troupe::launch

// The table of recipes, one for each method of algorithms/methods.h: the template of recipes.cpp,
// or the overload of recipe_for() for its settings.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/config/schema.h"
#include "launch/recipes/presets.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch::recipes {

std::span<const Recipe> recipes();

/// Every value of --algorithm.
std::vector<std::string> algorithm_names();
/// The recipe of an algorithm, or nullptr.
const Recipe* find_recipe(std::string_view algorithm);
/// The recipe of a validated configuration.
const Recipe& recipe_of(const config::RunConfig& config);
RolesNeeded roles_of(const config::RunConfig& config);
/// True if runs of `algorithm` read the field.
bool reads(std::string_view algorithm, const config::Field& field);

}  // namespace troupe::launch::recipes

#include "launch/recipes/recipes.h"

#include <algorithm>

#include "engine/base/check.h"
#include "launch/recipes/grpo.h"
#include "launch/recipes/kto.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/ppo.h"
#include "launch/recipes/pretrain.h"
#include "launch/recipes/reward_model.h"
#include "launch/recipes/row_recipe.h"

namespace troupe::launch::recipes {

std::span<const Recipe> recipes() {
  static const std::vector<Recipe> table = [] {
    std::vector<Recipe> all;
    const algorithms::MethodSettings methods;
    algorithms::MethodSettings::each_method(
        methods, [&]<class M>(const M&) { all.push_back(recipe_for(std::type_identity<M>())); });
    return all;
  }();
  return table;
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes()) names.emplace_back(recipe.name);
  for (const Preset& preset : algorithm_presets()) names.emplace_back(preset.name);
  return names;
}

const Recipe* find_recipe(std::string_view algorithm) {
  const Preset* preset = find_preset(algorithm);
  for (const Recipe& recipe : recipes())
    if (recipe.name == (preset ? preset->of : algorithm)) return &recipe;
  return nullptr;
}

const Recipe& recipe_of(const config::RunConfig& config) {
  const Recipe* recipe = find_recipe(config.algorithm);
  check(recipe != nullptr, "recipe_of: the algorithm was not validated");
  return *recipe;
}

RolesNeeded roles_of(const config::RunConfig& config) {
  RolesNeeded roles = recipe_of(config).roles(config);
  if (base_is_reference(config))
    roles.reference = {false, "without an adapter (lora.rank), whose base is the reference"};
  return roles;
}

bool reads(std::string_view algorithm, const config::Field& field) {
  const auto has_part = [&](const Recipe& recipe) {
    return std::ranges::find(recipe.sections, config::part_of(field)) != recipe.sections.end();
  };
  if (std::ranges::none_of(recipes(), has_part)) return true;
  const Recipe* recipe = find_recipe(algorithm);
  return recipe && has_part(*recipe);
}

}  // namespace troupe::launch::recipes

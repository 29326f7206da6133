#include "launch/recipes/recipes.h"

#include "engine/base/check.h"
#include "launch/recipes/dpo.h"
#include "launch/recipes/grpo.h"
#include "launch/recipes/sft.h"

namespace troupe::launch {

std::span<const Recipe> recipes() {
  static const std::vector<Recipe> table{sft_recipe(), dpo_recipe(), grpo_recipe()};
  return table;
}

std::span<const Preset> algorithm_presets() {
  static const std::vector<Preset> table = grpo_presets();
  return table;
}

std::span<const Preset> dialects() {
  static const std::vector<Preset> table = grpo_dialects();
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

const Recipe& recipe_of(const RunConfig& config) {
  const Recipe* recipe = find_recipe(config.algorithm);
  check(recipe != nullptr, "recipe_of: an algorithm that was never judged");
  return *recipe;
}

RolesNeeded roles_of(const RunConfig& config) { return recipe_of(config).roles(config); }

const Preset* find_preset(std::string_view algorithm) {
  for (const Preset& preset : algorithm_presets())
    if (preset.name == algorithm) return &preset;
  return nullptr;
}

const Preset* find_dialect(std::string_view dialect, std::string_view recipe) {
  for (const Preset& preset : dialects())
    if (preset.name == dialect && preset.of == recipe) return &preset;
  return nullptr;
}

}  // namespace troupe::launch

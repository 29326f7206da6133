#include "launch/recipes/recipes.h"

#include "engine/base/check.h"
#include "launch/recipes/grpo/grpo.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/ppo/ppo.h"
#include "launch/recipes/preference/dpo.h"
#include "launch/recipes/preference/kto.h"
#include "launch/recipes/preference/reference_free.h"
#include "launch/recipes/rewards/orm.h"
#include "launch/recipes/rewards/prm.h"
#include "launch/recipes/sft.h"

namespace troupe::launch {

std::span<const Recipe> recipes() {
  static const std::vector<Recipe> table{sft_recipe(),  dpo_recipe(), simpo_recipe(), cpo_recipe(),
                                         orpo_recipe(), kto_recipe(), orm_recipe(),   prm_recipe(),
                                         ppo_recipe(),  grpo_recipe()};
  return table;
}

std::span<const Preset> algorithm_presets() {
  static const std::vector<Preset> table = grpo_presets();
  return table;
}

std::span<const Preset> dialects() {
  static const std::vector<Preset> table = [] {
    std::vector<Preset> all = grpo_dialects();
    for (Preset& more : dpo_dialects()) all.push_back(std::move(more));
    for (Preset& more : reference_free_dialects()) all.push_back(std::move(more));
    for (Preset& more : kto_dialects()) all.push_back(std::move(more));
    for (Preset& more : ppo_dialects()) all.push_back(std::move(more));
    for (Preset& more : orm_dialects()) all.push_back(std::move(more));
    for (Preset& more : prm_dialects()) all.push_back(std::move(more));
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

const Recipe& recipe_of(const RunConfig& config) {
  const Recipe* recipe = find_recipe(config.algorithm);
  check(recipe != nullptr, "recipe_of: an algorithm that was never judged");
  return *recipe;
}

RolesNeeded roles_of(const RunConfig& config) {
  RolesNeeded roles = recipe_of(config).roles(config);
  if (base_is_reference(config))
    roles.reference = {false, "without an adapter (lora.rank), whose base is the reference"};
  return roles;
}

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

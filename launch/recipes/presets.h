// Presets: algorithms that are settings of another, and the defaults of other tools.
#pragma once

#include <span>
#include <string_view>

#include "launch/recipes/recipe.h"

namespace troupe::launch::recipes {

/// Algorithms that are settings of a recipe, with the defaults of their papers.
std::span<const Preset> algorithm_presets();
/// Defaults of other tools, by name and recipe.
std::span<const Preset> compat_presets();

/// A default of a method. Presets, a file and options override it.
struct MethodDefault {
  std::string_view method, key, value;
  std::string_view with_adapter;  ///< the value if a LoRA adapter is trained; empty: the same
  std::string_view source;
};
std::span<const MethodDefault> method_defaults();
/// Those of one recipe.
std::span<const MethodDefault> method_defaults(std::string_view recipe);

/// The algorithm preset with this name, or nullptr.
const Preset* find_preset(std::string_view algorithm);
/// The defaults of a tool for a recipe, or nullptr.
const Preset* find_compat(std::string_view compat, std::string_view recipe);

}  // namespace troupe::launch::recipes

// Kahneman-Tversky optimization: the recipe of --algorithm kto.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include "launch/recipes/recipe.h"

namespace troupe::launch::recipes {

Recipe recipe_for(std::type_identity<algorithms::KtoConfig>);

/// Returns a warning about the weights for `good` and `bad` answers, or "": desirable_weight * good
/// : undesirable_weight * bad should be between 1 and 4/3 (the paper, sec. 4.2; TRL warns as well).
std::string imbalance(const algorithms::KtoLoss& loss, std::size_t good, std::size_t bad);

}  // namespace troupe::launch::recipes

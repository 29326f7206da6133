// Preference optimization on pairs of answers: the recipes of DPO, and of SimPO, CPO and ORPO,
// which need no reference.
#pragma once

#include "launch/recipes/recipe.h"

namespace troupe::launch {

Recipe dpo_recipe();
Recipe simpo_recipe();
Recipe cpo_recipe();
Recipe orpo_recipe();

}  // namespace troupe::launch

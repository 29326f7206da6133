// Supervised fine-tuning: the recipe of --algorithm sft.
#pragma once

#include "launch/recipes/recipe.h"

namespace troupe::launch {

Recipe sft_recipe();

}  // namespace troupe::launch

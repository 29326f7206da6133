// Outcome reward models as a run: the recipe of --algorithm orm.
#pragma once

#include "algorithms/losses/orm_loss.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch {

Recipe orm_recipe();
std::vector<Preset> orm_dialects();

/// Errc::usage: a word or a number that the loss refuses.
Result<algorithms::OrmLoss> orm_settings(const RunConfig& config);

}  // namespace troupe::launch

// Kahneman-Tversky optimization as a run: the recipe of --algorithm kto.
#pragma once

#include "algorithms/kto.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch {

Recipe kto_recipe();
std::vector<Preset> kto_dialects();

/// Errc::usage: settings that contradict each other. `max_length`: tokens of a sequence.
Result<algorithms::KtoConfig> kto_settings(const RunConfig& config, std::int64_t max_length);

/// What is odd about the weights for so many good and bad answers, or "": desirable_weight * good :
/// undesirable_weight * bad is to be from 1 to 4/3 (the paper, sec. 4.2; TRL warns of it too).
std::string imbalance(const algorithms::KtoLoss& loss, std::size_t good, std::size_t bad);

}  // namespace troupe::launch

// Pretraining: the recipe of --algorithm pretrain.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "launch/recipes/recipe.h"

namespace troupe::launch::recipes {

Recipe recipe_for(std::type_identity<algorithms::PretrainConfig>);

/// Whether `path` is the prefix of a token dataset: PREFIX.bin and PREFIX.idx exist.
bool is_token_dataset(const std::string& path);
/// Whether the run is a pretraining run over token datasets (the first source is one).
bool reads_token_files(const config::RunConfig& config);
/// Whether such a run has validation data: eval.path, or a share of pretrain.split.
bool validates_token_files(const config::RunConfig& config);
/// Whether the run starts from random weights (init.weights).
bool starts_from_random_weights(const config::RunConfig& config);

struct TokenFile {
  std::string prefix;
  std::int64_t documents = 0, tokens = 0;
};
/// The token datasets of the run. Errors of opening them.
Result<std::vector<TokenFile>> token_files(const config::RunConfig& config);

}  // namespace troupe::launch::recipes

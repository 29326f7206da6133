// `troupe merge`: merges an adapter into its base model.
#pragma once

#include <string>

#include "launch/model/model_overrides.h"

namespace troupe::launch::commands {

struct MergeOptions {
  std::string model, adapter, output;
  std::string dtype = "f32";        ///< data type of the stored weights: f32, bf16, f16
  model::ModelOverrides overrides;  ///< of the base, in the result's config.json
};
/// Merges an adapter into its base model and saves a model folder. Returns the exit code.
/// Throws Failure.
int merge(const MergeOptions& options);

}  // namespace troupe::launch::commands

// The architectures of a run's models, with the values that replace those of config.json.
#pragma once

#include <string>

#include "engine/models/spec.h"
#include "launch/config/run_config.h"

namespace troupe::launch {

/// model_overrides where `folder` is the run's model, otherwise none. Checkpoints have them in
/// their config.json.
Json overrides_of(const RunConfig& config, const std::string& folder);

/// The architecture of a model folder (checkpoint::read_folder_spec) with its overrides.
Result<engine::models::DecoderSpec> spec_of(const RunConfig& config, const std::string& folder);

}  // namespace troupe::launch

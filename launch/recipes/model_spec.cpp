#include "launch/recipes/model_spec.h"

#include "engine/checkpoint/load_decoder.h"

namespace troupe::launch {

Json overrides_of(const RunConfig& config, const std::string& folder) {
  return folder == config.model ? config.model_overrides.values : Json();
}

Result<engine::models::DecoderSpec> spec_of(const RunConfig& config, const std::string& folder) {
  return engine::checkpoint::read_folder_spec(folder, overrides_of(config, folder));
}

}  // namespace troupe::launch

// Adapters, for every algorithm: the checks and the meaning of the section `lora`.
#pragma once

#include "engine/adapter/lora_config.h"
#include "launch/recipes/validate.h"

namespace troupe::launch::recipes {

/// True if the run trains an adapter and not the model.
bool adapts(const config::RunConfig& config);
/// True if the reference is the policy's base with the adapter disabled, so that no reference model
/// is needed.
bool base_is_reference(const config::RunConfig& config);

/// The reference model: a model folder, and the folder of an adapter of it or "".
struct ReferenceFolders {
  std::string model, adapter;
};
/// The model that the method's section names, which may be an adapter of the run's model; by
/// default the run's model, with lora.adapter if lora.reference says so.
ReferenceFolders reference_folders(const config::RunConfig& config);

/// The new adapter that the keys define; not the one that lora.adapter names.
engine::adapter::LoraConfig lora_settings(const config::RunConfig& config);

struct WantedAdapter {
  engine::adapter::LoraConfig settings;
  engine::models::LoraSpec lora;
};
/// The adapter that a run over a base of this spec trains: a new one, or that of lora.adapter.
Result<WantedAdapter> wanted_adapter(const config::RunConfig& config,
                                     const engine::models::DecoderSpec& base);

/// Checks of the section, and of the rest of the run with an adapter.
void validate_lora(Validation& v);

}  // namespace troupe::launch::recipes

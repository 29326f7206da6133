// A run that trains an adapter: its model's spec, its trainer, and what its checkpoints hold.
#pragma once

#include <memory>
#include <string>

#include "engine/adapter/lora_config.h"
#include "engine/checkpoint/write_checkpoint.h"
#include "engine/models/decoder.h"
#include "launch/run/roles.h"

namespace troupe::launch {

/// The adapter of a run whose base has this spec: what the keys say, or the adapter that
/// lora.adapter names. Sets spec.lora. Throws Failure.
engine::adapter::LoraConfig add_adapter(const RunConfig& config, engine::models::DecoderSpec& spec);

/// The base with the run's adapter: that of checkpoint `from` with its moments, or the one that the
/// run begins with. Throws Failure, also where `from` holds another adapter than the configuration
/// asks for.
std::unique_ptr<engine::train::Trainer> load_adapted_trainer(
    const RoleParts& parts, const engine::train::TrainerOptions& options);

/// For a rollout: the base, and an adapter that does nothing until one comes by message.
std::unique_ptr<engine::models::Decoder> load_adapted_decoder(const RoleParts& parts);

/// Writes a checkpoint's adapter in PEFT's form.
engine::checkpoint::ModelWriter adapter_writer(const RunConfig& config,
                                               const engine::models::DecoderSpec& spec);

}  // namespace troupe::launch

// Adapters for every algorithm: the keys of the section `lora`, and what they mean for a run.
#pragma once

#include <span>

#include "engine/adapter/lora_config.h"
#include "launch/config/fields.h"
#include "launch/recipes/judging.h"

namespace troupe::launch {

std::span<const Field> lora_fields();

/// The run trains an adapter and leaves the model as it is.
bool adapts(const RunConfig& config);
/// What the algorithm compares with is the policy's own base, with the adapter off: no model of its
/// own is needed.
bool base_is_reference(const RunConfig& config);

/// The adapter that the keys ask for; not of one that lora.adapter names. Errc::usage for a pattern
/// that is no number.
Result<engine::adapter::LoraConfig> lora_settings(const RunConfig& config);

struct WantedAdapter {
  engine::adapter::LoraConfig settings;
  engine::models::LoraSpec lora;
};
/// The adapter that a run over a base of this spec trains: what the keys say, or the one that
/// lora.adapter names. Errors of both.
Result<WantedAdapter> wanted_adapter(const RunConfig& config,
                                     const engine::models::DecoderSpec& base);

/// What is wrong or odd with the section, and with the rest of the run because of it.
void judge_lora(Judging& judging);

}  // namespace troupe::launch

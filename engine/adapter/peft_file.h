// Adapters in PEFT's layout: a folder with adapter_config.json and adapter_model.safetensors, whose
// tensors are named base_model.model.MODULE.lora_A.weight, .lora_B.weight, .lora_magnitude_vector.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/adapter/lora_config.h"
#include "engine/base/errors/error.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/tensor_parts.h"
#include "engine/models/decoder.h"
#include "engine/models/storage.h"
#include "engine/nn/lora_rows.h"

namespace troupe::engine::adapter {

inline constexpr std::string_view config_file = "adapter_config.json",
                                  weights_file = "adapter_model.safetensors",
                                  prefix = "base_model.model.";

/// Whether the folder contains an adapter, not a model.
bool is_adapter(const std::string& folder);

struct AdapterSpec {
  LoraConfig config;
  models::LoraSpec lora;
  std::string base;  ///< base_model_name_or_path, or ""
};

/// Reads the adapter's configuration, resolves it for a base of this spec, and checks names, shapes
/// and types of its tensors. Loads no values. Errc::not_found, io, corrupt, bad_input, unsupported;
/// usage when the adapter belongs to another model.
Result<AdapterSpec> read_adapter(const std::string& folder, const models::DecoderSpec& base);

/// Loads this rank's part of an adapter that read_adapter has accepted into a model of that spec
/// whose base is loaded. Rejects NaN and infinity, and copies of base weights that differ from the
/// base.
Result<> load_adapter(const std::string& folder, models::Decoder& model);

/// The adapter in `folder` for a language model without one: its own tensors only, this rank's
/// part; with pipeline stages that of its layers. `base` must outlive it, and another thread may
/// compute with it meanwhile. Errors of read_adapter and load_adapter; usage for an adapter of a
/// normalized output head.
Result<std::shared_ptr<const nn::LoraModel>> load_lora_model(const std::string& folder,
                                                             const models::Decoder& base);

/// Writes both files into the existing folder, durably; never overwrites files. Equal adapters give
/// equal bytes. Arena 0 of `tensors` holds the values of the trained parameters. Collective over
/// their ranks. `base`: the value of base_model_name_or_path.
Result<> save_adapter(const std::string& folder, checkpoint::TensorParts& tensors,
                      const LoraConfig& config, const models::DecoderSpec& spec,
                      const std::string& base);

/// Layout in the file of the tensor of this name (without PEFT's prefix) and whole shape. Families
/// may order the rows of the base's matrix differently from the parameters (models/storage.h).
models::StoredTensor stored_layout(const std::string& name, const Shape& shape,
                                   const models::DecoderSpec& spec);

/// Name of that tensor in the file, without PEFT's prefix. `spec` has the adapter.
std::string stored_name(const std::string& name, const models::DecoderSpec& spec);

/// Converts values from the layout of the file to that of the parameters; equal lengths.
std::vector<float> from_file(const models::StoredTensor& form, std::vector<float> values);

}  // namespace troupe::engine::adapter

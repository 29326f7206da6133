// An adapter in PEFT's form: a folder with adapter_config.json and adapter_model.safetensors, whose
// tensors are named as the base's modules with "base_model.model." in front and .lora_A.weight,
// .lora_B.weight, .lora_magnitude_vector behind.
#pragma once

#include <string>
#include <vector>

#include "engine/adapter/lora_config.h"
#include "engine/base/error.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/models/decoder.h"
#include "engine/models/storage.h"
#include "engine/nn/logical_tensors.h"

namespace troupe::engine::adapter {

inline constexpr std::string_view config_file = "adapter_config.json",
                                  weights_file = "adapter_model.safetensors",
                                  prefix = "base_model.model.";

/// The folder holds an adapter, not a model.
bool is_adapter(const std::string& folder);

struct AdapterSpec {
  LoraConfig config;
  models::LoraSpec lora;
  std::string base;  ///< what base_model_name_or_path says, or ""
};

/// The adapter's configuration, settled for a base of this spec, whose tensors were compared with
/// it: names, shapes, kinds of numbers. Nothing is allocated for them yet. Errc::not_found, io,
/// corrupt, bad_input, unsupported; usage when it fits another model.
Result<AdapterSpec> read_adapter(const std::string& folder, const models::DecoderSpec& base);

/// The values of an adapter that read_adapter has seen, into a model of that spec whose base is
/// loaded: this rank's part of each. Refuses NaN and infinity, and a copy of a base's weight that
/// differs from the base.
Result<> load_adapter(const std::string& folder, models::Decoder& model);

/// Writes both files into the existing folder, durable; existing ones are never overwritten. Equal
/// adapters give equal bytes. Arena 0 of `tensors` are the values of the trained parameters; the
/// other ranks serve(). `base`: for base_model_name_or_path.
Result<> save_adapter(const std::string& folder, nn::LogicalTensors& tensors,
                      const LoraConfig& config, const models::DecoderSpec& spec,
                      const std::string& base);

/// How the file has the tensor of this name, without PEFT's prefix, and of this whole shape.
models::StoredTensor stored_form(const std::string& name, const Shape& shape,
                                 const models::DecoderSpec& spec);

/// The values inside from those of the file, and the other way; the same length.
std::vector<float> from_file(const models::StoredTensor& form, std::vector<float> values);
std::vector<float> to_file(const models::StoredTensor& form, std::vector<float> values);

}  // namespace troupe::engine::adapter

// LoRA adapters between PEFT's folders and the form of MindSpeed-LLM's checkpoints.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/megatron/megatron_adapter.h"
#include "launch/tools/convert/convert.h"

namespace troupe::launch::tools::convert {

/// Writes the adapter of a checkpoint of Megatron, settings.folder, as PEFT's: adapter_config.json
/// and adapter_model.safetensors in the new folder `to`. `model`: the folder with the config.json
/// of its base. Errors of read_megatron_adapter() and of ResultFolder.
Result<> adapter_to_peft(const engine::checkpoint::AdapterSettings& settings,
                         const std::string& model, const std::string& to);

/// Writes PEFT's adapter in `from` as options.save_dir, divided as the options say, with the number
/// of the iteration; `model` as above. Errc::unsupported for magnitudes (DoRA), modules that are
/// trained in full, and modules of other ranks or scales than the rest; errors of
/// write_megatron_adapter() and of ResultFolder.
Result<> adapter_to_megatron(const std::string& from, const std::string& model,
                             const ConvertOptions& options, std::int64_t iteration);

}  // namespace troupe::launch::tools::convert

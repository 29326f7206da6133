// Reading LoRA adapters in the form of MindSpeed-LLM's checkpoints into one A and one B for each
// module, as PEFT has them.
#pragma once

#include <string>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/megatron/adapter_writer.h"
#include "engine/checkpoint/megatron/megatron_adapter.h"
#include "engine/models/spec.h"

namespace troupe::engine::checkpoint {

/// The adapter of settings.folder, in a checkpoint that may have nothing else. Of a file that
/// adapter_writer.h wrote, the matrices that were written, and their rank; of MindSpeed's, the
/// modules of a joined tensor have equal A. The alpha is that of settings, which must be above 0.
/// Errc::corrupt, usage: tensors that do not fit the model, or contradict the settings.
Result<JoinedAdapter> read_megatron_adapter(const models::DecoderSpec& spec,
                                            const AdapterSettings& settings);

}  // namespace troupe::engine::checkpoint

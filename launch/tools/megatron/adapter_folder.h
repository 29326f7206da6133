// --lora-load: a LoRA adapter of a run, of PEFT, or in the form of Megatron.
#pragma once

#include <string>

#include "engine/base/errors/error.h"
#include "launch/tools/megatron/flags.h"

namespace troupe::launch::tools::megatron {

/// PEFT's folder of --lora-load: the folder itself, that of the last checkpoint of a run, or
/// `made`, which rank 0 makes of a checkpoint of Megatron; "" without the flag. `model`: the folder
/// of the base. Errc::usage where --lora-r or --lora-alpha contradict it; Errc::not_found; errors
/// of adapter_to_peft() and wait_for_rank_0().
Result<std::string> adapter_folder(const CommandLine& line, const std::string& model,
                                   const std::string& made);

}  // namespace troupe::launch::tools::megatron

// The model that a command line of Megatron starts from, as a Hugging Face folder.
#pragma once

#include <string>

#include "launch/tools/megatron/config_fields.h"

namespace troupe::launch::tools::megatron {

struct InitialModel {
  std::string folder;
  bool random = false;   ///< from random weights, even if the folder has some
  Replaced values = {};  ///< what counts in place of its config.json
};

/// --load, a Hugging Face folder, the output of a run, or a checkpoint of Megatron, which rank 0
/// converts into SAVE/initial_model with the tokenizer and the config.json of
/// --tokenizer-name-or-path. If it is --save, the folder of a run that is resumed: what the run
/// started from. Without --load: that folder's config.json, or a new one from the flags, with
/// random weights. Checks the flags that describe the model. Errc::usage, not_found, corrupt, io,
/// timeout.
Result<InitialModel> initial_model(const CommandLine& line);

}  // namespace troupe::launch::tools::megatron

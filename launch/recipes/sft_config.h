// The section `sft` of a run file.
#pragma once

#include <string>

namespace troupe::launch {

struct SftConfig {
  std::string loss = "nll";  ///< the names of algorithms::SftLossKind
  bool mask_prompt = true;   ///< train on the assistant's tokens only
};

}  // namespace troupe::launch

// Memory that a run needs, by part, against the memory that is there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/models/spec.h"
#include "launch/config/run_config.h"

namespace troupe::launch {

struct MemoryPart {
  std::string what;
  std::uint64_t bytes = 0;
};

/// Of all ranks together, as on one machine. Weights, gradients and moments are exact, activations
/// an estimate, the KV cache an upper bound.
std::vector<MemoryPart> memory_needed(const RunConfig& config,
                                      const engine::models::DecoderSpec& spec);

/// Bytes that this process may still take: the smaller of the machine's available memory and its
/// control group's limit. 0: not known.
std::uint64_t memory_present();

/// "1.5 GiB", "260.1 KiB".
std::string bytes_text(std::uint64_t bytes);

}  // namespace troupe::launch

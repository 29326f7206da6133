// Estimate of the memory that a run needs, by part, and the memory available.
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

/// Sums over all ranks, as on one machine. Weights, gradients and moments are exact, activations an
/// estimate, the KV cache an upper bound.
std::vector<MemoryPart> memory_needed(const RunConfig& config,
                                      const engine::models::DecoderSpec& spec);

/// Bytes of the weights that are trained, in f32: the adapter's, or the model's.
std::uint64_t trained_bytes(const RunConfig& config, const engine::models::DecoderSpec& spec);

/// Bytes of each trained parameter on a rank that has all of it: "12 (weight 4, gradient 4, moments
/// 4)".
std::string bytes_per_parameter(const RunConfig& config);

/// "1.5 GiB", "260.1 KiB".
std::string bytes_text(std::uint64_t bytes);

}  // namespace troupe::launch

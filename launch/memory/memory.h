// Estimate of the memory that a run needs, by part, and the memory available.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/models/spec.h"
#include "launch/config/run_config.h"
#include "launch/memory/rank_memory.h"

namespace troupe::launch::memory {

struct MemoryPart {
  std::string what;
  std::uint64_t bytes = 0;
  std::uint64_t of_rank = 0;  ///< of a model that is not the policy: at the rank with most
  /// Of `bytes` and `of_rank`: weights, gradients and optimizer state, which are resident whatever
  /// the data.
  std::uint64_t fixed = 0, fixed_of_rank = 0;
};

/// Of a run in one process, whose ranks are threads: sums over all ranks. Weights, gradients and
/// moments are exact, activations an estimate, the KV cache an upper bound.
std::vector<MemoryPart> memory_needed(const config::RunConfig& config,
                                      const engine::models::DecoderSpec& spec);

/// Predicted peak of a rank that is a process of mpirun.
struct RankPeak {
  RankMemory models;               ///< that it trains
  std::uint64_t other_models = 0;  ///< or its part of them: reference, reward models, rollout
  std::uint64_t program = 0;       ///< code, libraries, data, and buffers for messages
  std::uint64_t fixed_others = 0;  ///< of `other_models`: weights, gradients, optimizer state
  std::uint64_t bytes() const {
    return models.trained() + models.passes() + other_models + program;
  }
  std::uint64_t fixed() const { return models.fixed() + fixed_others; }
};

/// One for each of memory_of_ranks().
std::vector<RankPeak> peaks_of_ranks(const config::RunConfig& config,
                                     const engine::models::DecoderSpec& spec);

/// Bytes of the weights that are trained, in f32: the adapter's, or the model's.
std::uint64_t trained_bytes(const config::RunConfig& config,
                            const engine::models::DecoderSpec& spec);

/// Bytes of each trained parameter on a rank that has all of it: "12 (weight 4, gradient 4, moments
/// 4)".
std::string bytes_per_parameter(const config::RunConfig& config);

/// "1.5 GiB", "260.1 KiB".
std::string bytes_text(std::uint64_t bytes);

}  // namespace troupe::launch::memory

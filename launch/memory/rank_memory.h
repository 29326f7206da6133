// Memory of the models that a run trains, on each part of its grid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/models/spec.h"
#include "launch/config/run_config.h"

namespace troupe::launch::memory {

/// Bytes of a value of the trained model. The weights and gradients of an adapter are f32.
struct ValueBytes {
  std::uint64_t weight, gradient, moment, average;
  explicit ValueBytes(const config::RunConfig& config);
  std::uint64_t all() const { return weight + gradient + 2 * moment + average; }
};

/// The models that a rank trains, in bytes. Equal on all replicas, but for shards of the optimizer
/// state, which differ by at most 64 KiB per 4 MiB.
struct RankMemory {
  int stage = 0, part = 0;  ///< of parallel.pp and parallel.tp
  /// Of the policy; exact. The weights are those of the base where an adapter is trained.
  std::uint64_t weights = 0, adapter = 0, gradients = 0, moments = 0, average = 0;
  /// Of the gradients: the second one of a tied table, of which only the rows of tokens that occur
  /// become resident.
  std::uint64_t lookup = 0;
  std::uint64_t critic = 0;  ///< in the policy's grid: weights, gradients and moments; exact
  /// Of the largest micro-batch; estimates. `widened`: copies of bf16 operands in f32.
  std::uint64_t activations = 0, products = 0, widened = 0;
  std::uint64_t trained() const {
    return weights + adapter + gradients + moments + average + critic;
  }
  /// Resident whatever the data.
  std::uint64_t fixed() const { return trained() - lookup; }
  std::uint64_t passes() const { return activations + products + widened; }
};

/// One for each stage and each part of it, which parallel.dp x parallel.cp ranks have: the parts of
/// the first stage, then those of the next one. Throws Failure if the model cannot be divided so.
std::vector<RankMemory> memory_of_ranks(const config::RunConfig& config,
                                        const engine::models::DecoderSpec& spec);

/// Weights, gradients and moments of a critic with a grid of its own, at the rank that has most.
/// Throws Failure if it cannot be divided so.
std::uint64_t critic_bytes(const config::RunConfig& config,
                           const engine::models::DecoderSpec& spec);

}  // namespace troupe::launch::memory

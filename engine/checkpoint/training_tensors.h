// training/optimizer.safetensors: F32 tensors `exp_avg.NAME` and `exp_avg_sq.NAME` of every
// parameter, and `master.NAME` when the model folder's weights are rounded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/tensor_parts.h"

namespace troupe::engine::checkpoint {

inline constexpr std::string_view optimizer_file = "training/optimizer.safetensors";

/// Arenas of a checkpoint's TensorParts: the weights and, if present, AdamW's moments and the
/// moving average of the weights.
enum CheckpointArena : std::size_t {
  weights_arena = 0,
  exp_avg_arena = 1,
  exp_avg_sq_arena = 2,
  average_arena = 3
};

/// Writes the moments and the master weights, where requested: each rank those that it has.
/// Collective. Errc::io.
Result<> save_training_tensors(const std::string& path, TensorParts& tensors, bool with_moments,
                               bool with_master);

/// Reads this rank's part of the moments (nullptr: not requested). Master weights, where the file
/// has them, replace the values of `into`. With `shards`, reads only this rank's shard of the
/// moments, which are [shards->count()].
Result<> load_training_tensors(const std::string& path, nn::Parameters& into, Tensor* exp_avg,
                               Tensor* exp_avg_sq, const nn::ArenaShards* shards = nullptr);

}  // namespace troupe::engine::checkpoint

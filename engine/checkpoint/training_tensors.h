// training/optimizer.safetensors: F32 tensors `exp_avg.NAME` and `exp_avg_sq.NAME` of every
// parameter, and `master.NAME` when the model folder's weights are rounded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/nn/logical_tensors.h"

namespace troupe::engine::checkpoint {

inline constexpr std::string_view optimizer_file = "training/optimizer.safetensors";

/// The arenas of a checkpoint's LogicalTensors: the weights and, where there are, AdamW's moments.
enum CheckpointArena : std::size_t { weights_arena = 0, exp_avg_arena = 1, exp_avg_sq_arena = 2 };

/// Writes the moments and the master weights, where asked, tensor by tensor. Errc::io.
Result<> save_training_tensors(const std::string& path, nn::LogicalTensors& tensors,
                               bool with_moments, bool with_master);

/// Reads what save_training_tensors wrote; nullptr: not wanted. Of each tensor, this rank's part.
/// The master weights replace those of `into` when the file has them.
Result<> load_training_tensors(const std::string& path, nn::Parameters& into, Tensor* exp_avg,
                               Tensor* exp_avg_sq);

}  // namespace troupe::engine::checkpoint

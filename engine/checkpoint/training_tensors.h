// training/optimizer.safetensors: F32 tensors `exp_avg.NAME` and `exp_avg_sq.NAME` of every parameter, and `master.NAME` when the
// model folder's weights are rounded.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::checkpoint {

inline constexpr std::string_view optimizer_file = "training/optimizer.safetensors";

/// Writes the arenas (absent ones are left out), each [parameters.count()], tensor by tensor. Errc::io.
Result<> save_training_tensors(const std::string& path, const nn::Parameters& parameters, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                               bool with_master);

/// Reads what save_training_tensors wrote; nullptr: not wanted. The master weights replace those of `into` when the file has them.
Result<> load_training_tensors(const std::string& path, nn::Parameters& into, Tensor* exp_avg, Tensor* exp_avg_sq);

}  // namespace troupe::engine::checkpoint

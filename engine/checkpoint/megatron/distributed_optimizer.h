// The tensors of Megatron's distributed optimizer (--use-distributed-optimizer), in the file
// distrib_optim.pt beside model_optim_rng.pt, which has the settings
// (megatron/core/optimizer/distrib_optimizer.py, get_parameter_state_dp_zero):
//
//   V / (torch.bfloat16, torch.float32) / param, exp_avg, exp_avg_sq: f32 vectors
//   V / (torch.bfloat16, torch.float32) / numel_unpadded: their length
//
// Each vector has all parameters of virtual rank V, the last parameter first
// (megatron/core/distributed/param_and_grad_buffer.py), with or without gaps: Megatron core from
// 0.8 on begins a parameter at a multiple of 64 elements of its bucket.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/megatron/layout.h"
#include "engine/checkpoint/pickle/torch_file.h"

namespace troupe::engine::checkpoint {

inline constexpr std::string_view distributed_file = "distrib_optim.pt";

/// A parameter of a rank's file.
struct RankParameter {
  const ShardTensor* plan;
  const PickledTensor* weight;
  int part = 0;  ///< virtual rank
};

/// exp_avg, exp_avg_sq and the f32 weight of a parameter: views of the vectors, of its shape.
using DistributedPart = std::array<PickledTensor, 3>;

/// The parts of `parameters`, which are those of `weights`, in Megatron's order. The place of each
/// is verified: the f32 weight, rounded to the type of the weight, must be the weight.
/// Errc::corrupt for vectors of other types; Errc::unsupported for other layouts.
Result<std::vector<DistributedPart>> distributed_parts(
    const TorchFile& state, const TorchFile& weights, const std::vector<RankParameter>& parameters);

}  // namespace troupe::engine::checkpoint

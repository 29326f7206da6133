// The state of Megatron's optimizer in the files of the ranks
// (megatron/core/optimizer/optimizer.py: Float16OptimizerWithFloat16Params, FP32Optimizer):
//
//   optimizer / optimizer / state / I / exp_avg, exp_avg_sq, step
//   optimizer / optimizer / param_groups / G / params: [I, ...], lr, weight_decay, ...
//   optimizer / fp32_from_fp16_params / G / J: the f32 weight of the J-th parameter of group G
//   opt_param_scheduler
//
// The distributed optimizer has param_groups without "params" there and neither state nor weights,
// which are in another file (distributed_optimizer.h).
//
// Parameters are numbered group by group. The weights of matrices are one group; vectors, which
// have no weight decay, another; the group that the model has a parameter of first comes first.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/megatron/layout.h"
#include "engine/checkpoint/megatron/weight_source.h"
#include "engine/checkpoint/pickle/pickle_value.h"
#include "engine/checkpoint/pickle/torch_file.h"

namespace troupe::engine::checkpoint {

/// What the optimizer keeps of a parameter.
enum class OptimizerTensor : std::uint8_t { exp_avg, exp_avg_sq, master };
inline constexpr std::array<std::string_view, 3> optimizer_tensor_names{"exp_avg", "exp_avg_sq",
                                                                        "master"};

/// Entries that are no tensors of parameters.
struct OptimizerEntries {
  std::array<PickleValue::Dict, 2> groups;  ///< of matrices, of vectors; without "params"
  PickleValue step;                         ///< of each parameter, or None
  PickleValue scheduler;                    ///< opt_param_scheduler, or None
};

/// The tensors of one parameter's part; master is nullptr where the model's weights are f32.
using OptimizerPart = std::array<const PickledTensor*, 3>;

struct RankOptimizer {
  std::vector<OptimizerPart> parts;  ///< of the rank's tensors, in their order
  OptimizerEntries entries;
  bool distributed = false;  ///< the parts are in another file
};

/// The state in a rank's file; `tensors`: those of all its virtual ranks. Nothing where the file
/// has no optimizer. Errc::unsupported for other forms; Errc::corrupt for other numbers or shapes
/// of tensors.
Result<std::optional<RankOptimizer>> read_optimizer(const TorchFile& file,
                                                    const std::vector<ShardTensor>& tensors);

/// The state of a whole model, to be divided anew.
struct OptimizerSource {
  std::array<const WeightSource*, 3> tensors{};  ///< by OptimizerTensor; master may be nullptr
  OptimizerEntries entries;
};

/// A tensor of a rank's file: part of `tensors[kind]`.
struct OptimizerSlot {
  const ShardTensor* shard;
  OptimizerTensor kind;
};

/// The value of "optimizer" in a rank's file, whose tensors are `tensors`; `slots` gets what
/// follows the pickle, in its order. Errors of the source.
Result<PickleValue> optimizer_value(const std::vector<ShardTensor>& tensors,
                                    const OptimizerSource& source,
                                    std::vector<OptimizerSlot>& slots);

}  // namespace troupe::engine::checkpoint

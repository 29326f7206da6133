// Pipeline stages: the layers of a decoder that each rank of a pipeline-parallel group has; a pure
// function of the spec and the rank.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/models/split.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::models {

/// The embedding is on the first stage, the final norm and the head on the last one. The table of a
/// tied model is on both.
struct PipelineStage {
  int index = 0, count = 1;
  parallel::Range layers;  ///< numbers of the layers in the whole model

  bool first() const { return index == 0; }
  bool last() const { return index == count - 1; }
};

/// Number of layers of each stage: `wanted` or, where it is empty, an even division whose earlier
/// stages are one layer longer (5 layers on 2 stages: 3, 2). `noop` are numbers, from 0, of places
/// in the list of layers that have none, as --noop-layers of Megatron-LM: `wanted` counts them, the
/// result does not. Errc::usage where a stage would have no layer or the numbers do not add up.
Result<std::vector<std::int64_t>> stage_layers(const DecoderSpec& spec, int stages,
                                               const std::vector<std::int64_t>& wanted,
                                               const std::vector<std::int64_t>& noop = {});

/// PipelineStage `index` of the stages with these numbers of layers.
PipelineStage stage_of(int index, const std::vector<std::int64_t>& layers);

/// The tensors of parameter_list(spec, split) that the stage has, in the same order. The last stage
/// of several has its copy of a tied table after them (a frozen one before the trained tensors);
/// norms count it on the first.
std::vector<nn::ParameterSpec> parameter_list(const DecoderSpec& spec, const Split& split,
                                              const PipelineStage& stage);

}  // namespace troupe::engine::models

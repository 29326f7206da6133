// Pipeline stages: the layers of a decoder that each rank of a pipeline-parallel group has; a pure
// function of the spec and the rank.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/models/split.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::models {

/// A stage has one or several chunks of consecutive layers (virtual stages): chunk c of stage s is
/// number c x count + s of all chunks in the order of the model. The embedding is on the first
/// stage, the final norm and the head on the last one. The table of a tied model is on both.
struct PipelineStage {
  int index = 0, count = 1;
  std::vector<parallel::Range> chunks;  ///< numbers of the layers in the whole model

  bool first() const { return index == 0; }
  bool last() const { return index == count - 1; }
  /// Whether a chunk begins with the embedding.
  bool begins(std::size_t chunk) const { return first() && chunk == 0; }
  /// Whether a chunk ends with the final norm and the head.
  bool ends(std::size_t chunk) const { return last() && chunk + 1 == chunks.size(); }
  /// Numbers of the layers of all chunks, ascending.
  std::vector<std::int64_t> layers() const;
  /// The layers of a chunk as places in layers().
  parallel::Range places(std::size_t chunk) const;
};

/// Number of layers of each of stages x chunks chunks, in the order of the model: `wanted` or,
/// where it is empty, an even division whose earlier chunks are one layer longer (5 layers on 2
/// stages: 3, 2; of 2 chunks each: 2, 1, 1, 1). `noop` are numbers, from 0, of places in the list
/// of layers that have none, as --noop-layers of Megatron-LM: `wanted` counts them, the result does
/// not. Errc::usage where a stage would have no layer or the numbers do not add up.
Result<std::vector<std::int64_t>> stage_layers(const DecoderSpec& spec, int stages,
                                               const std::vector<std::int64_t>& wanted,
                                               const std::vector<std::int64_t>& noop = {},
                                               int chunks = 1);

/// PipelineStage `index` of the stages of `chunks` chunks with these numbers of layers.
PipelineStage stage_of(int index, const std::vector<std::int64_t>& layers, int chunks = 1);

/// The tensors of parameter_list(spec, split) that the stage has, in the same order. The last stage
/// of several has its copy of a tied table after them (a frozen one before the trained tensors);
/// norms count it on the first.
std::vector<nn::ParameterSpec> parameter_list(const DecoderSpec& spec, const Split& split,
                                              const PipelineStage& stage);

}  // namespace troupe::engine::models

// How Megatron-LM divides a decoder's weights over tensor and pipeline ranks, and the names that
// its checkpoints give them (Megatron-LM: megatron/core/models/gpt, and megatron/legacy/model for
// the names before Megatron core).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/models/spec.h"

namespace troupe::engine::checkpoint {

enum class MegatronNames : std::uint8_t {
  mcore,   ///< "decoder.layers.0.self_attention.linear_qkv.weight"
  legacy,  ///< "language_model/encoder/layers.0.self_attention.query_key_value.weight"; dicts: "/"
};

/// Consecutive rows of a parameter; a vector is one column.
struct RowBlock {
  std::string parameter;  ///< the name in a Hugging Face checkpoint of Llama
  std::int64_t first = 0, count = 0;
  bool copy = false;  ///< repeats rows that another block has
};

/// A tensor of one rank's file: columns of blocks of rows.
struct ShardTensor {
  std::string name;
  std::vector<RowBlock> blocks;
  std::int64_t first_column = 0, columns = 1;  ///< of the parameters
  std::int64_t all_columns = 1;                ///< columns of the whole parameters
  bool vector = false;                         ///< has one axis

  std::vector<std::int64_t> shape() const;
};

inline constexpr std::int64_t empty_layer = -1;

/// A division of a model.
struct MegatronGrid {
  MegatronNames names = MegatronNames::mcore;
  int tensor = 1;
  /// [pipeline rank][virtual rank][index in the file]: number of the layer, or empty_layer.
  std::vector<std::vector<std::vector<std::int64_t>>> layers;
  std::int64_t vocabulary = 0;  ///< rows of the embedding with padding, over all tensor ranks

  int pipeline() const { return static_cast<int>(layers.size()); }
  int virtual_ranks() const { return static_cast<int>(layers.front().size()); }
};

/// Errc::unsupported for an architecture that has no place in these layouts, or not in the legacy
/// one; Errc::usage for heads, widths or layers that the grid does not divide.
Result<> check_megatron(const models::DecoderSpec& spec, const MegatronGrid& grid,
                        const std::string& where);

/// The tensors of a virtual rank's part of a file, in the order of Megatron.
std::vector<ShardTensor> shard_tensors(const models::DecoderSpec& spec, const MegatronGrid& grid,
                                       int tensor_rank, int pipeline_rank, int virtual_rank);

}  // namespace troupe::engine::checkpoint

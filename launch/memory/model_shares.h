// Parts of a model on the ranks of a grid, without their replicas.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/models/split.h"
#include "engine/models/stages.h"
#include "launch/config/run_config.h"

namespace troupe::launch::memory {

/// A number of bytes or values, of which none is negative.
inline std::uint64_t count_of(std::int64_t value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));
}

/// The stage and the part of the matrices that a rank has.
struct PartOfModel {
  engine::models::PipelineStage stage;
  engine::models::Split split;
};

/// The parts of a model of this shape in the grid `config.parallel`: those of the first stage, then
/// those of the next one. Throws Failure if the model cannot be divided so.
std::vector<PartOfModel> parts_of_model(const config::RunConfig& config,
                                        const engine::models::DecoderSpec& spec);

/// What the ranks of a replica hold of a model of this shape.
struct ModelShares {
  std::uint64_t ranks = 1;    ///< that hold it together
  std::uint64_t all = 0;      ///< values of all of them
  std::uint64_t largest = 0;  ///< values of the rank that holds most
  std::uint64_t cached = 0;   ///< bytes of a token in the KV cache of that with most
  ModelShares(const config::RunConfig& config, const engine::models::DecoderSpec& spec);
};

}  // namespace troupe::launch::memory

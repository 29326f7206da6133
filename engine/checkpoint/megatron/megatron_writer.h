// Writing checkpoints of Megatron-LM in the format "torch".
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/megatron/layout.h"
#include "engine/checkpoint/megatron/megatron_optimizer.h"
#include "engine/checkpoint/megatron/weight_source.h"
#include "engine/checkpoint/result_folder.h"
#include "engine/models/spec.h"

namespace troupe::engine::checkpoint {

struct MegatronOutput {
  ResultFolder& folder;                        ///< gets iter_NNNNNNN/ and the tracker
  MegatronGrid grid;                           ///< accepted by check_megatron
  std::optional<StoredType> type;              ///< none: as stored
  const OptimizerSource* optimizer = nullptr;  ///< its state is written as well
  std::int64_t iteration = 1;
  /// Called with the path of each rank's file that has been written.
  std::function<void(const std::string&)> written;
};

/// Writes the files of all ranks: checkpoint_version 3, the iteration, the weights, and the
/// architecture as a plain dict; with an optimizer also its state, as Megatron's without
/// --use-distributed-optimizer. Memory: one tensor of a rank and the parameters that it has parts
/// of. Errors of the source and of the folder.
Result<> write_megatron(const models::DecoderSpec& spec, const WeightSource& source,
                        const MegatronOutput& output);

}  // namespace troupe::engine::checkpoint

// Writing checkpoints of Megatron-LM in the format "torch".
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/base/error.h"
#include "engine/checkpoint/megatron/layout.h"
#include "engine/checkpoint/megatron/weight_source.h"
#include "engine/models/spec.h"

namespace troupe::engine::checkpoint {

struct MegatronOutput {
  std::string folder;              ///< exists; gets iter_0000001/ and the tracker
  MegatronGrid grid;               ///< accepted by check_megatron
  std::optional<StoredType> type;  ///< none: as stored
  /// Called with the path of each file that has been written.
  std::function<void(const std::string&)> written;
};

/// Writes the files of all ranks: checkpoint_version 3, iteration 1, the weights, and the
/// architecture as a plain dict. Files replace those of an interrupted conversion; the tracker is
/// written last. Memory: one tensor of a rank and the parameters that it has parts of. Errors of
/// the source; Errc::usage where the folder has a tracker; Errc::io.
Result<> write_megatron(const models::DecoderSpec& spec, const WeightSource& source,
                        const MegatronOutput& output);

}  // namespace troupe::engine::checkpoint

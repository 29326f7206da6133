// Checkpoints of a training run. OUTPUT/checkpoint-STEP/ is a model folder that any other tool
// loads; its training/ folder holds the optimizer's moments, state.json and manifest.json.
// OUTPUT/latest is a relative link to the newest. No times, no paths: equal runs give equal bytes.
// After a kill at any moment the newest checkpoint or the one before is there, whole.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/checkpoint/directory_lock.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/nn/parameters.h"
#include "engine/parallel/grid.h"

namespace troupe::engine::checkpoint {

/// Writes the weights of a checkpoint into its folder, from the values of the parameters.
using ModelWriter = std::function<Result<>(const std::string& folder, nn::LogicalTensors& tensors)>;

/// What a checkpoint is made of.
struct Snapshot {
  std::int64_t step = 0;
  const nn::Parameters& parameters;
  SaveOptions model;
  Tensor exp_avg,
      exp_avg_sq;  ///< AdamW's moments, [parameters.count()] each, or both absent on every rank
  Json state;      ///< whatever else the run needs to continue: loader position, seeds, hash of the
                   ///< configuration
  ModelWriter write_model;  ///< of an adapter, whose parameters are those that are trained; absent:
                            ///< a model folder is written
};

struct WriteOptions {
  int keep_last =
      0;  ///< older checkpoints beyond this many are removed; 0 keeps all, else at least 2
  /// For tests: called before each step of the protocol with its name; an error makes that step
  /// fail.
  std::function<Result<>(std::string_view step)> before;
};

/// Writes OUTPUT/checkpoint-STEP and points OUTPUT/latest at it; returns the checkpoint's path.
/// Everything goes into a temporary folder first and is made durable there; then one rename
/// publishes it. Temporary folders that killed runs left are swept. On an error (a full disk) the
/// temporary folder is removed and earlier checkpoints are as they were. A checkpoint of the same
/// step is replaced.
Result<std::string> write_checkpoint(const DirectoryLock& output, const Snapshot& snapshot,
                                     const WriteOptions& options = {});
/// The same checkpoint, byte for byte, of a model that a group holds in parts. Collective: rank 0,
/// which has the output's lock, writes; the others (`output` nullptr) hand it their parts, tensor
/// by tensor. All get its result. Only rank 0 needs step, state and options.
Result<std::string> write_checkpoint(const parallel::Mesh& mesh, const DirectoryLock* output,
                                     const Snapshot& snapshot, const WriteOptions& options = {});

}  // namespace troupe::engine::checkpoint

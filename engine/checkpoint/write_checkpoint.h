// Writing checkpoints of a training run. OUTPUT/checkpoint-STEP/ is a model folder that other tools
// can load; its training/ folder has the optimizer's moments, state.json and manifest.json, its
// ema/ folder, if the run keeps an average of the weights, is a model folder with that, in f32.
// OUTPUT/latest is a relative link to the newest, OUTPUT/best to the best one, if the run selects
// one. Files contain no times or paths: equal runs give equal bytes, but for training/journal.json,
// which tells one output directory from another. The manifest lists every file, and nothing outside
// of the folder belongs to it.
// After a kill at any moment, the newest checkpoint or the one before it is complete.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "engine/checkpoint/directory_lock.h"
#include "engine/checkpoint/disk_space.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/nn/arena_reader.h"
#include "engine/nn/arena_shards.h"
#include "engine/nn/parameters.h"
#include "engine/parallel/grid.h"

namespace troupe::engine::checkpoint {

/// Writes the weights of a checkpoint into its folder. Collective.
using ModelWriter = std::function<Result<>(const std::string& folder, TensorParts& tensors)>;

/// Folder of a checkpoint with the average of the weights.
inline constexpr std::string_view average_folder = "ema";

inline constexpr std::string_view journal_file = "training/journal.json";

/// Content of a checkpoint.
struct Snapshot {
  std::int64_t step = 0;
  const nn::Parameters& parameters;
  SaveOptions model;
  /// AdamW's moments, [parameters.count()] or [shards->count()] each, or both absent on every rank.
  Tensor exp_avg, exp_avg_sq;
  Json state;  ///< other state of the run: loader position, seeds, hash of the configuration
  ModelWriter write_model;  ///< writes an adapter; absent: a model folder is written
  /// Leaves out moments and master weights. Such a checkpoint cannot be resumed.
  bool only_model = false;
  /// How the replicas divide the moments (nullptr: they do not). Every replica then writes its
  /// part.
  const nn::ArenaShards* shards = nullptr;
  /// All tensors of a model with pipeline stages (Decoder::whole()); nullptr: `parameters` are all.
  const nn::Parameters* whole = nullptr;
  Tensor average = {};  ///< of the weights, divided as the moments, which are there; or absent
  /// Folder below the output whose files, which are durable, become files of training/; it is
  /// removed. "": none. Only on rank 0.
  std::string kept = {};
  /// What the journal of the run's directory has: journal_file. Not part of `state`, because a run
  /// that continues in another directory has the state of one without a pause. Null: none.
  Json journal = {};
};

struct WriteOptions {
  int keep_last = 0;  ///< number of newest checkpoints to keep, at least 2; 0 keeps all
  /// Step of the checkpoint that OUTPUT/best names, which is kept as well; 0: none.
  std::int64_t best_step = 0;
  /// Step before the rollout step that this one lies within, whose checkpoint is kept as well, for
  /// a run that is extended; -1: none.
  std::int64_t round_start = -1;
  /// Called with the name of each step before it runs, for tests; an error makes the step fail. The
  /// steps after "write optimizer" run in another thread.
  std::function<Result<>(std::string_view step)> before;
  /// Free bytes of the output's file system; another function for tests.
  std::uint64_t (*free_bytes)(const std::string& directory) = checkpoint::free_bytes;
};

/// A checkpoint that threads of its own write while training continues: one of each rank the
/// values, then one of rank 0 the rest. They use no communicator: the ranks agree where finish() is
/// called. Destroying it gives up a checkpoint that is not complete.
class CheckpointWrite : public nn::ArenaReader {
 public:
  /// Collective. The checkpoint's path once it is durable, or the first error of a rank; absent as
  /// long as it is being written, unless `wait`. Call it until there is a result, and not again.
  virtual std::optional<Result<std::string>> finish(bool wait) = 0;
};

/// Starts the writing of a checkpoint as write_checkpoint() writes it. Returns when its files are
/// created; until it has a result, only an update that waits for it (optim::AdamW::set_reader) may
/// change the values of the snapshot. A rank needs memory for 1 MiB of values and copies nothing
/// else. `mesh` (nullptr: one rank) and what the snapshot refers to outlive it. Collective.
Result<std::unique_ptr<CheckpointWrite>> start_checkpoint(const parallel::Mesh* mesh,
                                                          const DirectoryLock* output,
                                                          Snapshot snapshot,
                                                          WriteOptions options = {});

/// Writes OUTPUT/checkpoint-STEP and points OUTPUT/latest at it (first OUTPUT/best, if the best
/// checkpoint is there); returns the checkpoint's path. All
/// files are written durably to a temporary folder, which one rename publishes. Removes temporary
/// folders of killed runs. Compares the free space with what the tensors need before it writes. On
/// an error (a full disk) the temporary folder is removed and earlier checkpoints stay. Replaces a
/// checkpoint of the same step.
Result<std::string> write_checkpoint(const DirectoryLock& output, const Snapshot& snapshot,
                                     const WriteOptions& options = {});
/// Overload for a model that is split over a group; writes equal bytes. Collective: every rank
/// writes its part of the tensors into the files, and rank 0, which holds the output's lock (on the
/// others `output` is nullptr), everything else. All ranks return the same result. They share the
/// file system of the output and give equal snapshots, but for their tensors and the state, which
/// only rank 0 needs, as it does the options.
Result<std::string> write_checkpoint(const parallel::Mesh& mesh, const DirectoryLock* output,
                                     const Snapshot& snapshot, const WriteOptions& options = {});

}  // namespace troupe::engine::checkpoint

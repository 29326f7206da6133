// Reading training checkpoints (write_checkpoint.h): which one to resume from, and what is in it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "engine/nn/arena_shards.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::checkpoint {

struct FoundCheckpoint {
  std::string path;
  std::int64_t step = 0;
  /// One sentence per damaged checkpoint that was skipped, and those of VerifyRest; the caller must
  /// show them.
  std::vector<std::string> warnings;
};

/// The content of a checkpoint's training/state.json.
struct SavedState {
  std::int64_t step = 0;
  Json state;
  bool only_model = false;  ///< saved without optimizer state (Snapshot::only_model)
  std::string file = {};    ///< its path, for messages
};

/// Verifies what a run needs besides a checkpoint's own files; returns warnings, which the caller
/// of find_latest must show. An error makes the checkpoint a damaged one.
using VerifyRest = std::function<Result<std::vector<std::string>>(const std::string& path,
                                                                  const SavedState& state)>;

/// Finds the checkpoint from which a run in `output` resumes: the one that `latest` names, or else
/// the highest step, with every byte verified against its manifest, and `rest`. Skips damaged
/// checkpoints, with a warning. No checkpoint: nullopt. All damaged: Errc::corrupt.
Result<std::optional<FoundCheckpoint>> find_latest(const std::string& output,
                                                   const VerifyRest& rest = {});

/// Reads step and state of a checkpoint, without its tensors. Errc::not_found, corrupt, io.
Result<SavedState> read_training_state(const std::string& path);

/// Errc::usage for a checkpoint without optimizer state, from which no run can resume.
Result<> check_resumable(const SavedState& state, const std::string& path);

/// Loads this rank's part of the weights (the exact f32 values of training, even where those of the
/// model folder are rounded) and, where given, the moments ([into.count()] or [shards->count()]
/// each). `whole`: LoadOptions::whole. Does not verify checksums: find_latest or verify_checkpoint
/// must have accepted `path`. Errc::not_found: no training state, or no moments where they are
/// requested. Errc::usage (check_resumable), corrupt, io.
Result<SavedState> load_checkpoint(const std::string& path, nn::Parameters& into, bool tied,
                                   Tensor* exp_avg, Tensor* exp_avg_sq,
                                   const nn::ArenaShards* shards = nullptr,
                                   const nn::Parameters* whole = nullptr);

/// The step of a checkpoint's name: 120 for "checkpoint-120".
std::optional<std::int64_t> step_of_name(std::string_view name);

}  // namespace troupe::engine::checkpoint

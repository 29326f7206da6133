// Reading training checkpoints (write_checkpoint.h): which one to resume from, and what is in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::checkpoint {

struct FoundCheckpoint {
  std::string path;
  std::int64_t step = 0;
  /// One sentence for each damaged checkpoint that was passed over: the caller must show them.
  std::vector<std::string> warnings;
};

/// The checkpoint that a run over `output` continues from: the one that `latest` names, or else the
/// highest step, with every byte verified against its manifest. A damaged one is passed over, with
/// a warning, in favour of the next one that holds. No checkpoint: nullopt. Every one damaged:
/// Errc::corrupt.
Result<std::optional<FoundCheckpoint>> find_latest(const std::string& output);

struct TrainingState {
  std::int64_t step = 0;
  Json state;
};

/// The step and state of a checkpoint, without its tensors. Errc::not_found, corrupt, io.
Result<TrainingState> read_training_state(const std::string& path);

/// Loads this rank's part of the weights (with every bit that training had, also when the model
/// folder's are rounded) and, where given, the moments
/// ([into.count()] each). Does not verify checksums: `path` comes from find_latest, or went through
/// verify_checkpoint. Errc::not_found: no training state, or no moments where they are wanted.
/// Errc::corrupt, io.
Result<TrainingState> load_checkpoint(const std::string& path, nn::Parameters& into, bool tied,
                                      Tensor* exp_avg, Tensor* exp_avg_sq);

/// "checkpoint-120" gives 120.
std::optional<std::int64_t> step_of_name(std::string_view name);

}  // namespace troupe::engine::checkpoint

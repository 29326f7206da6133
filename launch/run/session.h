// Session: a run's output directory: its lock, and the state to resume from. Loads no tensors
// (launch/run/roles.h does that).
#pragma once

#include <optional>
#include <string>

#include "engine/base/files/output_folder.h"
#include "engine/checkpoint/directory_lock.h"
#include "engine/checkpoint/identity.h"
#include "engine/models/spec.h"
#include "launch/config/run_config.h"
#include "launch/run/training_state.h"

namespace troupe::launch::run {

class Session {
 public:
  /// Locks the output directory, finds the checkpoint to resume from, compares what its run was
  /// created from with `config` (run_record.h), and writes the resolved configuration. Throws
  /// Failure: another run holds the lock, every checkpoint is damaged, a checkpoint exists but
  /// resume is "never", the model is another one, ... From then on the process logs to
  /// OUTPUT/logs/`log` until it ends.
  explicit Session(const config::RunConfig& config, const std::string& log = "train.log");

  const config::RunConfig& config() const { return config_; }
  const engine::checkpoint::DirectoryLock& output() const { return lock_; }
  /// The output directory, for the files of the run other than checkpoints.
  const OutputFolder& folder() const { return folder_; }
  /// The checkpoint that the run resumes from, or "".
  const std::string& resume_from() const { return resume_from_; }
  /// Whether that checkpoint is one of the output directory.
  bool resumes_in_output() const;
  /// Steps completed before the run resumed.
  std::int64_t done() const { return state_ ? state_->step : 0; }
  /// What that checkpoint has besides tensors; nullptr at the start.
  const TrainingState* state() const { return state_ ? &*state_ : nullptr; }
  /// What the run is created from.
  const engine::checkpoint::Identity& identity() const { return identity_; }
  /// The shape of the trained model.
  engine::models::DecoderSpec spec() const;

 private:
  void read_state();
  void return_to_round_start();
  void keep_masks_of_earlier_version();

  config::RunConfig config_;
  engine::checkpoint::DirectoryLock lock_;
  OutputFolder folder_;
  std::string resume_from_;
  engine::checkpoint::Identity identity_;
  std::optional<TrainingState> state_;
};

}  // namespace troupe::launch::run

// Session: a run's place on disk and the device it computes on: lock, resumption, checkpoints.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "actors/roles/trainer.h"
#include "engine/checkpoint/run_checkpoint.h"
#include "engine/train/trainer.h"
#include "launch/run_config.h"

namespace troupe::launch {

class Session {
 public:
  /// Takes the output directory's lock, writes the resolved configuration there, and finds what the run goes on from.
  /// Throws Failure: another run has the directory, every checkpoint is damaged, train.resume is "never" and there is one, ...
  explicit Session(const RunConfig& config);

  const RunConfig& config() const { return config_; }
  engine::ops::Device& device() { return *device_; }
  /// Steps that are done already.
  std::int64_t done() const { return done_; }
  /// What the algorithm saved with them; null at the start.
  const Json& state() const { return state_; }

  /// The model as it is to be trained on: the checkpoint's weights and moments, or the starting weights.
  std::unique_ptr<engine::train::Trainer> make_trainer();
  /// A model that is never trained, from a folder.
  std::unique_ptr<engine::models::Decoder> make_model(const std::string& folder);
  /// A model of the trained one's shape, whose weights will come by message.
  std::unique_ptr<engine::models::Decoder> make_empty_model();
  engine::models::DecoderSpec spec() const;

  /// Writes checkpoints of this run. The session outlives it.
  actors::roles::Saver saver();

 private:
  RunConfig config_;
  engine::checkpoint::DirectoryLock lock_;
  std::unique_ptr<engine::ops::Device> device_;
  std::string from_;  // the checkpoint that the run goes on from, or ""
  std::int64_t done_ = 0;
  Json state_;
};

}  // namespace troupe::launch

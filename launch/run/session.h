// Session: a run's place on disk: its lock, and where it goes on from. No tensor is loaded here
// (launch/run/roles.h does that).
#pragma once

#include <string>

#include "engine/checkpoint/directory_lock.h"
#include "engine/models/spec.h"
#include "launch/config/run_config.h"

namespace troupe::launch {

/// The shape of the trained model; `from`: the checkpoint that the run goes on from, or "". Throws
/// Failure.
engine::models::DecoderSpec spec_of_run(const RunConfig& config, const std::string& from);

class Session {
 public:
  /// Takes the output directory's lock, writes the resolved configuration there, and finds what the
  /// run goes on from. Throws Failure: another run has the directory, every checkpoint is damaged,
  /// train.resume is "never" and there is one, ...
  explicit Session(const RunConfig& config);

  const RunConfig& config() const { return config_; }
  const engine::checkpoint::DirectoryLock& output() const { return lock_; }
  /// The checkpoint that the run goes on from, or "".
  const std::string& from() const { return from_; }
  /// Steps that are done already.
  std::int64_t done() const { return done_; }
  /// What the algorithm saved with them; null at the start.
  const Json& state() const { return state_; }
  /// Of the trained model.
  engine::models::DecoderSpec spec() const;

 private:
  RunConfig config_;
  engine::checkpoint::DirectoryLock lock_;
  std::string from_;
  std::int64_t done_ = 0;
  Json state_;
};

}  // namespace troupe::launch

// What a run's directory records of its starts: identity.json, what the run was created from;
// starts.jsonl, one line for each start with its settings; .fingerprints.json, the checksums of
// files that were read before (engine/checkpoint/fingerprint_cache.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/config/run_config.h"
#include "launch/run/identity.h"

namespace troupe::launch::run {

/// Reads all inputs of the run that starts in config.output. Throws Failure.
engine::checkpoint::Identity identify(const config::RunConfig& config);

/// Compares `now` with what the training state of the checkpoint records, reports each change, and
/// returns them. Throws Failure (Errc::usage) for a change with which a run
/// cannot resume; the message says how to start a new run from the checkpoint.
std::vector<Change> check_identity(const engine::checkpoint::Identity& now,
                                   const std::string& checkpoint,
                                   const std::optional<engine::checkpoint::Identity>& recorded,
                                   const config::RunConfig& config);

/// Writes identity.json and appends to starts.jsonl. `done`: steps before this start. Throws
/// Failure.
void record_start(const config::RunConfig& config, const engine::checkpoint::Identity& now,
                  const std::string& resume_from, std::int64_t done,
                  const std::vector<Change>& changes);

/// The options of a new run that begins with the weights of a checkpoint of this one.
std::string new_run_from(const std::string& checkpoint, const config::RunConfig& config);

/// The content of identity.json for the checkpoints of a run, if there is one. Throws Failure.
std::optional<engine::checkpoint::Identity> recorded_identity(const std::string& output);

}  // namespace troupe::launch::run

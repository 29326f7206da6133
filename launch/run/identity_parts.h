// The identity of a run that is about to start: its inputs are found and read.
#pragma once

#include "engine/checkpoint/fingerprint_cache.h"
#include "launch/config/run_config.h"
#include "launch/run/identity.h"

namespace troupe::launch::run {

/// Settings that affect no result of a run (how it is executed, displayed and saved), or that are
/// paths, whose content is an InputPart.
bool affects_results(std::string_view key);

/// Reads all inputs. A model folder that is a checkpoint of troupe is also compared with its
/// manifest. Errc::corrupt if it is damaged; errors of the folders and files.
Result<engine::checkpoint::Identity> identity_of(
    const config::RunConfig& config, engine::checkpoint::FingerprintCache& fingerprints);

}  // namespace troupe::launch::run

// Removal of what killed runs left in an output directory.
#pragma once

#include <cstdint>

#include "engine/base/json.h"
#include "launch/config/run_config.h"

namespace troupe::launch::run {

/// Removes temporary files of dead processes from config.output, whose lock is held, and its
/// folders, and files of checkpoints that are gone.
void remove_temporaries(const config::RunConfig& config);

/// Removes the folders of reward programs that killed processes have left in the directory for
/// temporary files (TMPDIR, /tmp).
void remove_reward_folders();

/// Removes checkpoints older than that of step `done`, from which the run resumes with `state`,
/// beyond train.keep_last: a run that was killed while it removed them may be complete. Errors of
/// these functions are logged as warnings.
void prune_checkpoints(const config::RunConfig& config, std::int64_t done, const Json& state);

}  // namespace troupe::launch::run

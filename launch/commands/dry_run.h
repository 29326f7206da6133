// `troupe train --dry-run`: one step of a run in a temporary folder, which is removed afterwards.
#pragma once

#include <functional>

#include "launch/config/run_config.h"

namespace troupe::launch::commands {

/// Calls `run` in a child process with a configuration of one rollout step, or one update, its
/// evaluation and its checkpoint, in a new folder beside config.output. Prints what the step did,
/// its peak memory and time. However the child ends, the folder is removed. Signals are passed on.
/// Returns the exit code: that of `run`, or 128 + the signal that killed it. In the child this
/// returns too, or throws what `run` throws. Throws Failure (Errc::io). Call it before any thread
/// exists.
int dry_run(const config::RunConfig& config,
            const std::function<int(const config::RunConfig&)>& run);

/// The configuration of the step: its output, length and checkpoint; no dynamic sampling, which may
/// find no group to train on, and no warmup, which would not change the weights.
config::RunConfig one_step_of(const config::RunConfig& config, const std::string& output);

}  // namespace troupe::launch::commands

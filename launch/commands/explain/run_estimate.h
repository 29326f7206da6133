// Estimates of a run before it starts: steps, epochs, tokens, time, and disk space.
#pragma once

#include <string>

#include "engine/models/spec.h"
#include "launch/commands/explain/machine.h"
#include "launch/commands/explain/run_size.h"
#include "launch/config/run_config.h"

namespace troupe::launch::commands {

/// Lines for `troupe explain`.
std::string run_estimate(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                         const RunSize& size, const MachineOptions& machine);

/// A line on the time in which pipeline stages wait; "" without stages. `tokens`: of an update.
std::string pipeline_text(const config::RunConfig& config, double tokens);

}  // namespace troupe::launch::commands

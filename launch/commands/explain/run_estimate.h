// Estimates of a run before it starts: steps, epochs, tokens, time, and disk space.
#pragma once

#include <string>

#include "engine/models/spec.h"
#include "launch/commands/explain/data_preview.h"
#include "launch/config/run_config.h"

namespace troupe::launch {

/// Lines for `troupe explain`. Measures the FLOP/s of a matrix product, which takes about a quarter
/// of a second. Errc::usage: settings that the run would refuse once it has read the data.
Result<std::string> run_estimate(const RunConfig& config, const engine::models::DecoderSpec& spec,
                                 const DataPreview& preview);

/// A line on the time in which pipeline stages wait; "" without stages. `tokens`: of an update.
std::string pipeline_text(const RunConfig& config, double tokens);

}  // namespace troupe::launch

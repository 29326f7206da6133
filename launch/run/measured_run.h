// What a run is measured by: the parts of its steps, the FLOPs of its passes, and the peak of its
// processors.
#pragma once

#include "engine/models/spec.h"
#include "launch/config/run_config.h"
#include "launch/journal/timings_file.h"

namespace troupe::launch::run {

/// Reads the shapes of the other models; one that cannot be read is counted as the policy's. Unless
/// train.peak_tflops is set, measures the peak, which takes about 10 ms.
journal::Measured measured_run(const config::RunConfig& config,
                               const engine::models::DecoderSpec& policy);

}  // namespace troupe::launch::run

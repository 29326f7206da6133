// The loss of a run as a formula, with the run's own numbers in it.
#pragma once

#include <string>

#include "launch/run_config.h"

namespace troupe::launch {

/// A few lines of text; algorithms/losses is what they describe.
std::string loss_formula(const RunConfig& config);

}  // namespace troupe::launch

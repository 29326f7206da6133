// The loss and the advantages of a grpo run as formulas, with the run's numbers.
#pragma once

#include <string>

#include "launch/config/run_config.h"

namespace troupe::launch::recipes {

std::string grpo_formula(const config::RunConfig& config);

}  // namespace troupe::launch::recipes

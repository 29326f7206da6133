// The reward of a run's configuration as the list that actors::rules::Rules reads.
#pragma once

#include "launch/run_config.h"

namespace troupe::launch {

Json reward_rules(const RunConfig& config);

}  // namespace troupe::launch

// A simulated run: the control flow of GRPO over virtual time, from the first start to the last
// step, with everything that its scenario does to it in between.
#pragma once

#include <string>

#include "tests/simulator/scenario.h"

namespace troupe::simulator {

/// The first violation of what a run guarantees, with the scenario; empty: none. The same scenario
/// gives the same result.
std::string simulate(const Scenario& scenario);

}  // namespace troupe::simulator

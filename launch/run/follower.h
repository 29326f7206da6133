// A reference that follows the policy (TR-DPO): a scorer whose weights move, and are saved in the
// folder `reference` of the run's output under the step of the policy's checkpoint, before it.
#pragma once

#include "launch/run/roles.h"

namespace troupe::launch {

/// From `source`, or what it had become when the run's checkpoint was written. Throws Failure.
actors::roles::Scorer make_follower(const RoleParts& parts, const std::string& source);

}  // namespace troupe::launch

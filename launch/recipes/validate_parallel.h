// Validation of grids: the sections parallel and parallel.ROLE of a configuration, and those of the
// groups of a cluster file.
#pragma once

#include "launch/recipes/validate.h"
#include "launch/recipes/role.h"

namespace troupe::launch {

/// All grids of a run. Of a role that the run does not have, keys are unused.
void validate_grids(Validation& validation);

/// The grid of a group with this role, which is `config.parallel`, without the ranges of its
/// numbers.
void validate_group(const RunConfig& config, Role role, const Origins& origins, Findings& findings);

}  // namespace troupe::launch

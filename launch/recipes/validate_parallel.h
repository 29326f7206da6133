// Validation of grids: the sections parallel and parallel.ROLE of a configuration, and those of the
// groups of a cluster file.
#pragma once

#include "launch/recipes/role.h"
#include "launch/recipes/validate.h"

namespace troupe::launch::recipes {

/// All grids of a run. Of a role that the run does not have, keys are unused.
void validate_grids(Validation& validation);

/// The grid of a group with this role, which is `config.parallel`, without the ranges of its
/// numbers.
void validate_group(const config::RunConfig& config, Role role, const config::Origins& origins,
                    Findings& findings);

}  // namespace troupe::launch::recipes

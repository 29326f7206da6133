// Checks of the grids of a run against its models, before any process is started or joined.
#pragma once

#include <string>

#include "engine/parallel/grid.h"
#include "launch/config/run_config.h"
#include "launch/recipes/role.h"

namespace troupe::launch::run {

/// Checks that the models of a role can be split into the parts and the stages of a grid. `node`:
/// the group, for the message. Errc::usage; the errors of reading their configuration.
Result<> check_grid(const config::RunConfig& config, recipes::Role role,
                    const engine::parallel::Grid& grid, const std::string& node);
/// The same for all roles of a run in one process or under one mpirun, with the grids of parallel.*
/// and parallel.ROLE.*, which fill the ranks of the run. Under mpirun also the grid of the policy
/// against the number of ranks.
Result<> check_grids(const config::RunConfig& config);

}  // namespace troupe::launch::run

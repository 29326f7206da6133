// The grids of a run's models in one process or under one mpirun: parallel.* of the policy,
// parallel.ROLE.* of the others.
#pragma once

#include <array>

#include "launch/config/run_config.h"
#include "launch/recipes/role.h"

namespace troupe::launch::recipes {

/// The roles that have a section `parallel.ROLE`.
inline constexpr std::array roles_with_section{Role::reference, Role::reward, Role::rollout,
                                               Role::critic};

/// parallel.ROLE.*; nullptr for the policy and the verifier.
const config::RoleParallelConfig* role_section(const config::RunConfig& config, Role role);

/// Whether the section of the role determines a grid: a key of it, other than zero, overlap and
/// order, has another value than the default.
bool has_grid(const config::RunConfig& config, Role role);

/// What the ranks of a run are. Where they are threads of one process, a model that is not trained
/// has one replica unless its dp is given, as all models take turns.
enum class RankKind { threads, processes };

/// The grid of the role's model: the policy's; that of its section; of a critic whose section
/// determines none, the policy's. dp 0 of a section becomes a number of replicas, which is 0 where
/// its other axes have more ranks than the run.
config::ParallelConfig parallel_of(const config::RunConfig& config, Role role, RankKind kind);

/// `config` as the role's model has it: `parallel` is parallel_of().
config::RunConfig config_for(const config::RunConfig& config, Role role, RankKind kind);

}  // namespace troupe::launch::recipes

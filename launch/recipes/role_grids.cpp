#include "launch/recipes/role_grids.h"

namespace troupe::launch::recipes {

const config::RoleParallelConfig* role_section(const config::RunConfig& config, Role role) {
  switch (role) {
    case Role::reference:
      return &config.reference_parallel;
    case Role::reward:
      return &config.reward_parallel;
    case Role::rollout:
      return &config.rollout_parallel;
    case Role::critic:
      return &config.critic_parallel;
    case Role::policy:
    case Role::verifier:
      break;
  }
  return nullptr;
}

bool has_grid(const config::RunConfig& config, Role role) {
  const config::RoleParallelConfig none;
  config::ParallelConfig own = *role_section(config, role);
  own.zero = none.zero;
  own.overlap = none.overlap;
  own.order = none.order;
  return own != static_cast<const config::ParallelConfig&>(none);
}

config::ParallelConfig parallel_of(const config::RunConfig& config, Role role, RankKind kind) {
  const config::RoleParallelConfig* section = role_section(config, role);
  if (section == nullptr || (role == Role::critic && !has_grid(config, role)))
    return config.parallel;
  config::ParallelConfig out = *section;
  if (out.dp > 0) return out;
  const bool one = kind == RankKind::threads && role != Role::critic;
  out.dp = one ? 1 : config.parallel.ranks() / (out.tp * out.pp * out.cp);
  return out;
}

config::RunConfig config_for(const config::RunConfig& config, Role role, RankKind kind) {
  config::RunConfig out = config;
  out.parallel = parallel_of(config, role, kind);
  return out;
}

}  // namespace troupe::launch::recipes

#include "launch/run/check_grids.h"

#include <vector>

#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/models/split.h"
#include "engine/models/stages.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/rewards.h"
#include "launch/run/role_table.h"
#include "launch/run/settings.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch {
namespace {

// The model folders of a role's actor.
Result<std::vector<std::string>> models_of(const RunConfig& config, Role role) {
  const auto or_policy = [&](const std::string& path) {
    return std::vector<std::string>{path.empty() ? config.model : path};
  };
  switch (role) {
    case Role::policy:
    case Role::rollout:
      return or_policy("");
    case Role::critic:
      return or_policy(config.critic.model);
    case Role::reference: {
      const auto reference = recipe_of(config).reference;
      return or_policy(reference ? reference(config) : "");
    }
    case Role::reward: {
      const auto items = reward_items(config);
      RETURN_IF_ERROR(items);
      std::vector<std::string> paths;
      for (const RewardItem& item : *items) paths.push_back(item.path());
      return paths;
    }
    case Role::verifier:
      break;
  }
  return std::vector<std::string>();
}

// The divisors of a number of ranks, for messages.
std::string divisors(int ranks) {
  std::vector<std::string> all;
  for (int size = 1; size <= ranks; ++size)
    if (ranks % size == 0) all.push_back(cat(size));
  return join(all, ", ");
}

// parallel.ROLE.tp against the ranks of the run, the role and its models.
Result<> check_scorer(const RunConfig& config, Role role, int ranks) {
  const int tp = scorer_tp(config, role);
  if (tp == 1) return {};
  const std::string key = cat("parallel.", to_string(role), ".tp = ", tp);
  if (ranks % tp != 0)
    return fail(Errc::usage, cat(key, ": the run has ", ranks, ranks == 1 ? " rank" : " ranks",
                                 " (parallel.*), which groups of ", tp,
                                 " do not fill; allowed: ", divisors(ranks)));
  if (role == Role::reference && roles_of(config).reference_follows)
    return fail(Errc::usage,
                cat(key,
                    ": this reference follows the policy, whose weights are mixed into a "
                    "whole model; allowed: 1"));
  return check_grid(config, role, {.dp = ranks / tp, .tp = tp}, key);
}

}  // namespace

Result<> check_grid(const RunConfig& config, Role role, const engine::parallel::Grid& grid,
                    const std::string& node) {
  if (grid.tp == 1 && grid.pp == 1) return {};
  if (role == Role::rollout && config.weights.format == actors::protocol::WeightCoding::delta)
    return fail(Errc::usage,
                cat("weights.format delta and ", node,
                    ": rollouts of several tensor-parallel ranks "
                    "keep their parts only, so no difference can be added to them; f32 and bf16 "
                    "can be sent"));
  const auto models = models_of(config, role);
  RETURN_IF_ERROR(models);
  for (const std::string& model : *models) {
    const auto spec = spec_of(config, model);
    RETURN_IF_ERROR(spec);
    auto fits = engine::models::check_split(*spec, grid.tp);
    if (fits && grid.pp > 1)
      if (const auto layers = engine::models::stage_layers(*spec, grid.pp, layers_of_stages(config),
                                                           noop_layers(config),
                                                           static_cast<int>(config.parallel.vpp));
          !layers)
        fits = fail(layers);
    if (!fits)
      return fail(fits.error().code,
                  node.empty() ? fits.error().what : cat(node, ": ", fits.error().what));
  }
  return {};
}

Result<> check_grids(const RunConfig& config) {
  const auto grid = policy_grid(config);
  if (transports::mpi::under_mpirun())
    RETURN_IF_ERROR(engine::parallel::check_fits(grid, transports::mpi::mpirun_size()));
  const RolesNeeded needed = roles_of(config);
  Result<> all;
  for_each_role([&]<Role R>() {
    if (all && needed.of(R).needed)
      all = role_entry<R>().sharing == Sharing::grid ? check_grid(config, R, grid, "")
                                                     : check_scorer(config, R, grid.ranks());
  });
  return all;
}

}  // namespace troupe::launch

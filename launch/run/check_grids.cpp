#include "launch/run/check_grids.h"

#include <vector>

#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/models/split.h"
#include "engine/models/stages.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/rewards.h"
#include "launch/run/settings.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::run {
namespace {

// The model folders of a role's actor.
Result<std::vector<std::string>> models_of(const config::RunConfig& config, recipes::Role role) {
  const auto or_policy = [&](const std::string& path) {
    return std::vector<std::string>{path.empty() ? config.model : path};
  };
  switch (role) {
    case recipes::Role::policy:
    case recipes::Role::rollout:
      return or_policy("");
    case recipes::Role::critic:
      return or_policy(config.critic.model);
    case recipes::Role::reference:
      return or_policy(recipes::reference_folders(config).model);
    case recipes::Role::reward: {
      const auto items = recipes::reward_items(config);
      RETURN_IF_ERROR(items);
      std::vector<std::string> paths;
      for (const recipes::RewardItem& item : *items) paths.push_back(item.path());
      return paths;
    }
    case recipes::Role::verifier:
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

// "parallel.reference.tp = 2", or all axes of which the section has more than one rank.
std::string axes_of(const config::RoleParallelConfig& grid, recipes::Role role) {
  std::vector<std::string> axes;
  for (const auto& [name, size] : {std::pair{"tp", grid.tp}, {"pp", grid.pp}, {"cp", grid.cp}})
    if (size > 1)
      axes.push_back(cat("parallel.", recipes::to_string(role), '.', name, " = ", size));
  return join(axes, " x ");
}

// parallel.ROLE.* against the ranks of the run.
Result<> check_ranks(const config::RunConfig& config, recipes::Role role) {
  const config::RoleParallelConfig* section = recipes::role_section(config, role);
  if (section == nullptr) return {};
  const std::int64_t ranks = config.parallel.ranks(),
                     group = section->tp * section->pp * section->cp;
  if (ranks % group != 0)
    return fail(Errc::usage,
                cat(axes_of(*section, role), ": the run has ", ranks,
                    ranks == 1 ? " rank" : " ranks", " (parallel.*), which groups of ", group,
                    " do not fill; allowed: ", divisors(static_cast<int>(ranks))));
  if (section->dp == 0 || section->dp == ranks / group) return {};
  return fail(
      Errc::usage,
      cat("parallel.", recipes::to_string(role), ".dp = ", section->dp, ": the model has ",
          ranks / group, " replicas, the ", ranks, ranks == 1 ? " rank" : " ranks",
          " of the run (parallel.*) in groups of ", group, "; allowed: 0, ", ranks / group));
}

// The grid of a role of a run without a cluster file, which is the policy's or that of its section.
Result<> check_role(const config::RunConfig& config, recipes::Role role) {
  RETURN_IF_ERROR(check_ranks(config, role));
  const config::RoleParallelConfig* section = recipes::role_section(config, role);
  const config::RunConfig own = recipes::config_for(config, role, recipes::RankKind::processes);
  const std::string axes = section ? axes_of(*section, role) : "";
  const auto fits = check_grid(own, role, own.parallel, axes);
  if (fits || axes.empty()) return fits;
  // The keys behind the axes are those of the section, too.
  std::string what = fits.error().what;
  constexpr std::string_view prefix = "parallel.";
  if (what.starts_with(axes))
    if (const auto at = what.find(prefix, axes.size()); at != std::string::npos)
      what.insert(at + prefix.size(), cat(recipes::to_string(role), '.'));
  return fail(fits.error().code, std::move(what));
}

}  // namespace

Result<> check_grid(const config::RunConfig& config, recipes::Role role,
                    const engine::parallel::Grid& grid, const std::string& node) {
  if (grid.tp == 1 && grid.pp == 1 && grid.cp == 1) return {};
  const bool divided = grid.tp > 1 || grid.pp > 1;
  if (divided && role == recipes::Role::rollout &&
      config.weights.format == actors::protocol::WeightCoding::delta)
    return fail(Errc::usage,
                cat("weights.format delta and ", node,
                    ": the ranks of a divided rollout keep their parts only, so no difference can "
                    "be added to them; f32 and bf16 can be sent"));
  const auto models = models_of(config, role);
  RETURN_IF_ERROR(models);
  for (const std::string& model : *models) {
    const auto spec = recipes::spec_of(config, model);
    RETURN_IF_ERROR(spec);
    auto fits = engine::models::check_split(*spec, grid.tp);
    if (fits) fits = engine::models::check_mixture(*spec, "context", grid.cp);
    if (fits && grid.pp > 1)
      if (const auto layers =
              engine::models::stage_layers(*spec, grid.pp, config.parallel.layers,
                                           config.parallel.noop_layers, config.parallel.vpp);
          !layers)
        fits = fail(layers);
    if (!fits)
      return fail(fits.error().code,
                  node.empty() ? fits.error().what : cat(node, ": ", fits.error().what));
  }
  return {};
}

Result<> check_grids(const config::RunConfig& config) {
  const engine::parallel::Grid& grid = config.parallel;
  if (transports::mpi::under_mpirun())
    RETURN_IF_ERROR(engine::parallel::check_fits(grid, transports::mpi::mpirun_size()));
  const recipes::RolesNeeded needed = recipes::roles_of(config);
  for (std::size_t role = 0; role < recipes::role_names.size(); ++role)
    if (needed.of(static_cast<recipes::Role>(role)).needed)
      RETURN_IF_ERROR(check_role(config, static_cast<recipes::Role>(role)));
  return {};
}

}  // namespace troupe::launch::run

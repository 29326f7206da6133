#include "engine/parallel/grid.h"

#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/parallel/one_rank.h"

namespace troupe::engine::parallel {
namespace {

Coordinates coordinates_of(int rank, const Grid& grid) {
  const int part = rank / grid.tp, outer = part / grid.cp;
  const bool stages_first = grid.order == AxisOrder::tp_cp_pp_dp;
  return {.dp = stages_first ? outer / grid.pp : outer % grid.dp,
          .tp = rank % grid.tp,
          .pp = stages_first ? outer % grid.pp : outer / grid.dp,
          .cp = part % grid.cp};
}

}  // namespace

std::string to_string(const Grid& grid) {
  return cat("dp ", grid.dp, " x tp ", grid.tp, grid.pp == 1 ? "" : cat(" x pp ", grid.pp),
             grid.cp == 1 ? "" : cat(" x cp ", grid.cp));
}

Result<void> check_fits(const Grid& grid, int ranks) {
  // Each axis is bounded first, so that the product cannot overflow.
  const auto possible = [ranks](int size) { return size >= 1 && size <= ranks; };
  if (possible(grid.dp) && possible(grid.tp) && possible(grid.pp) && possible(grid.cp) &&
      std::int64_t{grid.dp} * grid.tp <= ranks &&
      std::int64_t{grid.dp} * grid.tp * grid.pp <= ranks &&
      std::int64_t{grid.dp} * grid.tp * grid.pp * grid.cp == ranks)
    return {};
  // With the requested stages and parts of the context, where they divide the ranks.
  const int pp = possible(grid.pp) && ranks % grid.pp == 0 ? grid.pp : 1;
  const int cp = possible(grid.cp) && ranks / pp % grid.cp == 0 ? grid.cp : 1;
  const int left = ranks / pp / cp;
  std::vector<std::string> fitting;
  for (int tp = 1; tp <= left; ++tp)
    if (left % tp == 0) fitting.push_back(to_string(Grid{left / tp, tp, pp, cp}));
  return fail(Errc::usage, cat("parallel: ", to_string(grid), " does not match the ", ranks,
                               ranks == 1 ? " rank" : " ranks",
                               " that were started; expected one of ", join(fitting, ", ")));
}

Mesh::Mesh()
    : world_(std::make_unique<OneRank>()),
      tp_(std::make_unique<OneRank>()),
      dp_(std::make_unique<OneRank>()),
      pp_(std::make_unique<OneRank>()),
      cp_(std::make_unique<OneRank>()) {
}

Result<Mesh> Mesh::create(std::unique_ptr<Communicator> world, Grid grid) {
  check(world != nullptr, "Mesh: expected a communicator");
  RETURN_IF_ERROR(check_fits(grid, world->size()));
  Mesh mesh;
  mesh.grid_ = grid;
  const Coordinates at = coordinates_of(world->rank(), grid);
  mesh.coordinates_ = at;
  mesh.world_ = std::move(world);
  const int replica = at.pp * grid.dp + at.dp;
  mesh.tp_ = mesh.world_->split(replica * grid.cp + at.cp, at.tp);
  mesh.dp_ = mesh.world_->split((at.pp * grid.cp + at.cp) * grid.tp + at.tp, at.dp);
  if (grid.pp > 1)
    mesh.pp_ = mesh.world_->split((at.dp * grid.cp + at.cp) * grid.tp + at.tp, at.pp);
  if (grid.cp == 1) return mesh;
  mesh.cp_ = mesh.world_->split(replica * grid.tp + at.tp, at.cp);
  mesh.replicas_ = mesh.world_->split(at.pp * grid.tp + at.tp, at.dp * grid.cp + at.cp);
  return mesh;
}

}  // namespace troupe::engine::parallel

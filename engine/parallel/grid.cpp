#include "engine/parallel/grid.h"

#include <vector>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/parallel/one_rank.h"

namespace troupe::engine::parallel {

std::string to_string(const Grid& grid) {
  const std::string text = cat("dp ", grid.dp, " x tp ", grid.tp);
  return grid.pp == 1 ? text : cat(text, " x pp ", grid.pp);
}

Result<void> check_fits(const Grid& grid, int ranks) {
  // Each axis is bounded first, so that the product cannot overflow.
  const auto possible = [ranks](int size) { return size >= 1 && size <= ranks; };
  if (possible(grid.dp) && possible(grid.tp) && possible(grid.pp) &&
      std::int64_t{grid.dp} * grid.tp <= ranks &&
      std::int64_t{grid.dp} * grid.tp * grid.pp == ranks)
    return {};
  // With the requested stages, where they divide the ranks.
  const int pp = possible(grid.pp) && ranks % grid.pp == 0 ? grid.pp : 1, left = ranks / pp;
  std::vector<std::string> fitting;
  for (int tp = 1; tp <= left; ++tp)
    if (left % tp == 0) fitting.push_back(to_string(Grid{left / tp, tp, pp}));
  return fail(Errc::usage, cat("parallel: ", to_string(grid), " does not match the ", ranks,
                               ranks == 1 ? " rank" : " ranks",
                               " that were started; expected one of ", join(fitting, ", ")));
}

Mesh::Mesh()
    : world_(std::make_unique<OneRank>()),
      tp_(std::make_unique<OneRank>()),
      dp_(std::make_unique<OneRank>()),
      pp_(std::make_unique<OneRank>()) {
}

Result<Mesh> Mesh::create(std::unique_ptr<Communicator> world, Grid grid) {
  check(world != nullptr, "Mesh: expected a communicator");
  RETURN_IF_ERROR(check_fits(grid, world->size()));
  Mesh mesh;
  mesh.grid_ = grid;
  const int rank = world->rank(), replica = rank / grid.tp;
  const Coordinates at{replica % grid.dp, rank % grid.tp, replica / grid.dp};
  mesh.coordinates_ = at;
  mesh.world_ = std::move(world);
  mesh.tp_ = mesh.world_->split(replica, at.tp);
  mesh.dp_ = mesh.world_->split(at.pp * grid.tp + at.tp, at.dp);
  if (grid.pp > 1) mesh.pp_ = mesh.world_->split(at.dp * grid.tp + at.tp, at.pp);
  return mesh;
}

}  // namespace troupe::engine::parallel

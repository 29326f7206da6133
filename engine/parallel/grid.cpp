#include "engine/parallel/grid.h"

#include <vector>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/parallel/one_rank.h"

namespace troupe::engine::parallel {

std::string to_string(const Grid& grid) {
  return cat("dp ", grid.dp, " x tp ", grid.tp);
}

Result<void> check_fits(const Grid& grid, int ranks) {
  // Each axis is bounded first, so that the product cannot overflow.
  if (grid.dp >= 1 && grid.tp >= 1 && grid.dp <= ranks && grid.tp <= ranks &&
      std::int64_t{grid.dp} * grid.tp == ranks)
    return {};
  std::vector<std::string> fitting;
  for (int tp = 1; tp <= ranks; ++tp)
    if (ranks % tp == 0) fitting.push_back(to_string(Grid{ranks / tp, tp}));
  return fail(Errc::usage, cat("parallel: ", to_string(grid), " does not match the ", ranks,
                               ranks == 1 ? " rank" : " ranks",
                               " that were started; expected one of ", join(fitting, ", ")));
}

Mesh::Mesh()
    : world_(std::make_unique<OneRank>()),
      tp_(std::make_unique<OneRank>()),
      dp_(std::make_unique<OneRank>()) {
}

Result<Mesh> Mesh::create(std::unique_ptr<Communicator> world, Grid grid) {
  check(world != nullptr, "Mesh: expected a communicator");
  RETURN_IF_ERROR(check_fits(grid, world->size()));
  Mesh mesh;
  mesh.grid_ = grid;
  mesh.coordinates_ = {world->rank() / grid.tp, world->rank() % grid.tp};
  mesh.world_ = std::move(world);
  mesh.tp_ = mesh.world_->split(mesh.coordinates_.dp, mesh.coordinates_.tp);
  mesh.dp_ = mesh.world_->split(mesh.coordinates_.tp, mesh.coordinates_.dp);
  return mesh;
}

}  // namespace troupe::engine::parallel

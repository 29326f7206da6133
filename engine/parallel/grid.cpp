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
  return fail(Errc::usage, cat("parallel: ", to_string(grid), " does not make ", ranks,
                               ranks == 1 ? " rank" : " ranks",
                               ", as many as were started; what fits is ", join(fitting, ", ")));
}

Mesh::Mesh()
    : world_(std::make_unique<OneRank>()),
      tp_(std::make_unique<OneRank>()),
      dp_(std::make_unique<OneRank>()) {
}

Result<Mesh> Mesh::create(std::unique_ptr<Communicator> world, Grid grid) {
  check(world != nullptr, "a mesh needs a group");
  RETURN_IF_ERROR(check_fits(grid, world->size()));
  Mesh mesh;
  mesh.grid_ = grid;
  mesh.place_ = {world->rank() / grid.tp, world->rank() % grid.tp};
  mesh.world_ = std::move(world);
  mesh.tp_ = mesh.world_->split(mesh.place_.dp, mesh.place_.tp);
  mesh.dp_ = mesh.world_->split(mesh.place_.tp, mesh.place_.dp);
  return mesh;
}

}  // namespace troupe::engine::parallel

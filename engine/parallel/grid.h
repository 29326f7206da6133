// Grid: how the ranks of a group share one model. The only place with rank arithmetic.
#pragma once

#include <memory>
#include <string>

#include "engine/base/error.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

/// Sizes of the axes; tp varies fastest: rank = dp_index * tp + tp_index.
struct Grid {
  int dp = 1;  ///< data: replicas that share the batch
  int tp = 1;  ///< tensor: parts of every matrix
  int ranks() const { return dp * tp; }
  bool operator==(const Grid&) const = default;
};
/// "dp 2 x tp 4"
std::string to_string(const Grid& grid);
/// Errc::usage when the grid's product is not `ranks`; says which grids would fit.
Result<void> check_fits(const Grid& grid, int ranks);

/// A rank's indices on the axes.
struct Place {
  int dp = 0, tp = 0;
};

/// One rank's place in the grid and its communicators: the whole group, its row of tp ranks, its
/// column of dp ranks.
class Mesh {
 public:
  /// A group of one.
  Mesh();
  /// Collective. Errc::usage as check_fits().
  static Result<Mesh> create(std::unique_ptr<Communicator> world, Grid grid);

  const Grid& grid() const { return grid_; }
  const Place& place() const { return place_; }
  Communicator& world() const { return *world_; }
  Communicator& tp() const { return *tp_; }
  Communicator& dp() const { return *dp_; }
  /// Rank 0 of the group: it alone answers messages and writes files.
  bool leads() const { return world_->rank() == 0; }

 private:
  Grid grid_;
  Place place_;
  std::unique_ptr<Communicator> world_, tp_, dp_;
};

}  // namespace troupe::engine::parallel

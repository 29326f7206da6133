// Grid: the axes of parallelism over the ranks of a group. All rank arithmetic is here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"
#include "engine/base/json/fields.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

/// The axes in the order in which they vary over the ranks, the fastest first: a rank is
/// ((pp_index * dp + dp_index) * cp + cp_index) * tp + tp_index, or, with stages next to each
/// other, ((dp_index * pp + pp_index) * cp + cp_index) * tp + tp_index.
enum class AxisOrder : std::uint8_t { tp_cp_dp_pp, tp_cp_pp_dp };
constexpr std::array<std::string_view, 2> names_of(AxisOrder) {
  return {"tp-cp-dp-pp", "tp-cp-pp-dp"};
}

/// Sizes of the axes.
struct Grid {
  int dp = 1;  ///< data parallel: replicas that partition the batch
  int tp = 1;  ///< tensor parallel: parts of every matrix
  int pp = 1;  ///< pipeline parallel: stages of layers
  int cp = 1;  ///< context parallel: parts of the tokens of a micro-batch
  AxisOrder order = AxisOrder::tp_cp_dp_pp;
  int ranks() const { return dp * tp * pp * cp; }
  bool operator==(const Grid&) const = default;

  static void each_field(auto& self, auto&& field) {
    field("tp", self.tp, troupe::Range{1, 1024}, "tensor-parallel size");
    field("dp", self.dp, troupe::Range{1, 1024}, "data-parallel size");
    field("pp", self.pp, troupe::Range{1, 1024},
          "number of pipeline stages, which divide the layers");
    field("cp", self.cp, troupe::Range{1, 1024},
          "context-parallel size: ranks that divide the tokens of every micro-batch");
    field("order", self.order,
          "numbers of the ranks, the axis that varies fastest first: tp-cp-dp-pp, neighbours sum "
          "gradients; tp-cp-pp-dp, neighbours are stages; results are the same");
  }
};
/// "dp 2 x tp 4"; pp and cp follow where they are above 1: "dp 2 x tp 4 x pp 3"
std::string to_string(const Grid& grid);
/// Errc::usage when the grid does not have `ranks` ranks; the message lists the grids that do.
Result<void> check_fits(const Grid& grid, int ranks);

/// Indices of a rank on the axes.
struct Coordinates {
  int dp = 0, tp = 0, pp = 0, cp = 0;
};

/// A rank's coordinates in the grid and its communicators: the whole group, and its group along
/// each axis.
class Mesh {
 public:
  /// A group of one.
  Mesh();
  /// Collective. Errc::usage as check_fits().
  static Result<Mesh> create(std::unique_ptr<Communicator> world, Grid grid);

  const Grid& grid() const { return grid_; }
  const Coordinates& coordinates() const { return coordinates_; }
  Communicator& world() const { return *world_; }
  Communicator& tp() const { return *tp_; }
  Communicator& dp() const { return *dp_; }
  Communicator& pp() const { return *pp_; }
  Communicator& cp() const { return *cp_; }
  /// The ranks with the same part of the model, those of cp and dp: they sum their gradients.
  Communicator& replicas() const { return replicas_ ? *replicas_ : *dp_; }
  /// Whether this is rank 0 of the group, which alone answers messages and writes files.
  bool is_root() const { return world_->rank() == 0; }

 private:
  Grid grid_;
  Coordinates coordinates_;
  std::unique_ptr<Communicator> world_, tp_, dp_, pp_, cp_;
  std::unique_ptr<Communicator> replicas_;  ///< null without cp: dp_
};

}  // namespace troupe::engine::parallel

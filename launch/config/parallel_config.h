// ParallelConfig: the grid of a model over the ranks of a run, and how the ranks work together.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/json/fields.h"
#include "engine/parallel/grid.h"
#include "engine/train/replica_exchange.h"

namespace troupe::launch::config {

/// How the ranks of a context-parallel group compute attention.
enum class CpAlgorithm { ring, ulysses, hybrid };
constexpr std::array<std::string_view, 3> names_of(CpAlgorithm) {
  return {"ring", "ulysses", "hybrid"};
}

/// The section `parallel`: the grid of the policy's ranks (engine/parallel/grid.h).
struct ParallelConfig : engine::parallel::Grid {
  int vpp = 1;
  std::vector<std::int64_t> layers;
  std::vector<std::int64_t> noop_layers;
  CpAlgorithm cp_algorithm = CpAlgorithm::ring;
  int ulysses_degree = 0;
  int cp_window = 1;
  bool sp = false;
  int zero = 0;
  engine::train::Overlap overlap = engine::train::Overlap::none;
  std::int64_t timeout = 600;

  bool operator==(const ParallelConfig&) const = default;

  /// Stages stand before cp, and what ranks divide and exchange before their order.
  static void each_field(auto& self, auto&& field) {
    Grid::each_field(self, [&](std::string_view name, auto& value, const auto&... rest) {
      if (name == "cp") each_stage_field(self, field);
      if (name == "order") each_exchange_field(self, field);
      field(name.data(), value, rest...);
    });
    field("timeout", self.timeout, Range{5, 604800},
          "maximum time, in seconds, that a rank waits for other ranks in one exchange; then the "
          "run ends and names the rank that did not come");
  }
  static void each_stage_field(auto& self, auto&& field) {
    field("vpp", self.vpp, Range{1, 1024},
          "virtual stages of each pipeline stage: chunks of its layers, which micro-batches go "
          "through in turn, so that stages wait less; results are the same");
    field(
        "layers", self.layers, Range{1, 10000},
        "layers of each pipeline stage or, with parallel.vpp, of each virtual stage, in the order "
        "of the model; empty: an even division whose earlier ones are one layer longer");
    field("noop_layers", self.noop_layers, Range{0, 20000},
          "numbers, from 0, of places in the list of layers that have none (identity): parallel.pp "
          "divides the model's layers and these, so that stages become shorter");
  }
  static void each_exchange_field(auto& self, auto&& field) {
    field("cp_algorithm", self.cp_algorithm,
          "attention over the ranks of parallel.cp: ring, keys and values travel around them; "
          "ulysses, they exchange rows for heads; hybrid, rings of groups that exchange");
    field("ulysses_degree", self.ulysses_degree, Range{0, 1024},
          "hybrid: size of the groups that exchange rows for heads, a divisor of parallel.cp "
          "between 1 and parallel.cp");
    field(
        "cp_window", self.cp_window, Range{1, 1024},
        "ring and hybrid: size of the inner rings, through which keys and values pass before they "
        "move on to the next one (double ring); a divisor of the size of a ring; 1: one ring");
    field("sp", self.sp,
          "sequence parallelism: the ranks of parallel.tp divide the rows of norms and residual "
          "connections, too");
    field("zero", self.zero, Range{0, 3},
          "0: every data-parallel rank holds the whole optimizer state; 1: each holds its share "
          "(ZeRO-1); results are the same");
    field("overlap", self.overlap,
          "what replicas exchange while passes run: none; gradients, during the last backward pass "
          "of an update; all, with parallel.zero: 1 also weights, during the next forward pass; "
          "results are the same");
  }
};

/// Size of the groups of parallel.cp that exchange rows for heads.
inline int ulysses_degree(const ParallelConfig& parallel) {
  switch (parallel.cp_algorithm) {
    case CpAlgorithm::ring:
      return 1;
    case CpAlgorithm::ulysses:
      return parallel.cp;
    case CpAlgorithm::hybrid:
      return parallel.ulysses_degree;
  }
  return 1;
}

/// The sections `parallel.ROLE` of a run without a cluster file: the grid of another model over the
/// ranks of the policy's. dp 0: as many replicas as these ranks hold.
struct RoleParallelConfig : ParallelConfig {
  RoleParallelConfig() { dp = 0; }

  static void each_field(auto& self, auto&& field) {
    field("tp", self.tp, Range{1, 1024}, "as parallel.tp, for this model");
    field(
        "dp", self.dp, Range{0, 1024},
        "replicas of this model, the ranks of the run divided by its tp, pp and cp; 0: that many");
    field("pp", self.pp, Range{1, 1024}, "as parallel.pp, for this model");
    field("vpp", self.vpp, Range{1, 1024}, "as parallel.vpp, for this model");
    field("layers", self.layers, Range{1, 10000}, "as parallel.layers, for this model");
    field("noop_layers", self.noop_layers, Range{0, 20000},
          "as parallel.noop_layers, for this model");
    field("cp", self.cp, Range{1, 1024}, "as parallel.cp, for this model; rollouts have 1");
    field("cp_algorithm", self.cp_algorithm, "as parallel.cp_algorithm, for this model");
    field("ulysses_degree", self.ulysses_degree, Range{0, 1024},
          "as parallel.ulysses_degree, for this model");
    field("cp_window", self.cp_window, Range{1, 1024}, "as parallel.cp_window, for this model");
    field("sp", self.sp, "as parallel.sp, for this model; rollouts have false");
    field("zero", self.zero, Range{0, 1},
          "as parallel.zero, for the critic, whose default is the policy's; unused by others");
    field("overlap", self.overlap,
          "as parallel.overlap, for the critic, whose default is the policy's; unused by others");
    field("order", self.order,
          "as parallel.order, for this model; the default of the critic is the policy's");
  }
};

}  // namespace troupe::launch::config

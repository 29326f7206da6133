// The cluster file: which groups of processes a run is made of.
//
//   groups:
//     - {role: policy, parallel: {tp: 2}}
//     - {role: rollout, count: 2}
//     - {role: verifier}
#pragma once

#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/parallel/grid.h"
#include "launch/config/run_config.h"

namespace troupe::launch {

/// One entry of the list: `count` equal groups of grid.ranks() processes each.
struct GroupSpec {
  std::string role;  ///< policy, critic, reference, reward, rollout, verifier
  int count = 1;
  engine::parallel::Grid grid;
  std::string origin;  ///< "cluster.yaml:3"
};

/// One group as a place of the run: its node's name and what it does there.
struct NodeSpec {
  std::string name;  ///< "policy", "rollout-0"
  std::string role;
  engine::parallel::Grid grid;
};

/// Reads `groups:`. Errc::usage with every problem on a line of its own: unknown keys and words
/// (and the nearest known one), values out of their range, roles that the algorithm of `config`
/// needs and that are missing, or that it has no use for.
Result<std::vector<GroupSpec>> read_cluster(const std::string& path, const RunConfig& config);
/// The same for a text; `where` starts the messages.
Result<std::vector<GroupSpec>> parse_cluster(std::string_view text, const std::string& where,
                                             const RunConfig& config);

/// Groups of a count above one are numbered; roles keep the order of the file.
std::vector<NodeSpec> nodes_of(const std::vector<GroupSpec>& groups);

}  // namespace troupe::launch

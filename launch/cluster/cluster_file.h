// The cluster file: the groups of processes of a run.
//
//   groups:
//     - {role: policy, parallel: {tp: 2, pp: 2, vpp: 2}}
//     - {role: rollout, count: 2}
//     - {role: verifier}
//
// and the hosts of their processes (hosts.h).
#pragma once

#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/parallel/grid.h"
#include "launch/cluster/hosts.h"
#include "launch/config/run_config.h"
#include "launch/recipes/role.h"

namespace troupe::launch::cluster {

/// One entry of the list: `count` equal groups of parallel.ranks() processes each.
struct GroupSpec {
  recipes::Role role = recipes::Role::policy;
  int count = 1;
  /// Of a policy: the run's, with the keys that the group gives and its grid; of a critic: the
  /// group's keys, with zero, overlap and order of the policy unless they are given; of the others,
  /// the group's keys.
  config::ParallelConfig parallel;
  std::vector<std::string> given;  ///< keys of `parallel`: "tp"
  std::vector<std::string> hosts;  ///< that may have its ranks; empty: all
  std::string origin;              ///< "cluster.yaml:3"
};

struct ClusterFile {
  std::vector<GroupSpec> groups;
  Hosts hosts;
};

/// One group of processes of the run.
struct NodeSpec {
  std::string name;  ///< "policy", "rollout-0"
  recipes::Role role = recipes::Role::policy;
  config::ParallelConfig parallel;     ///< as GroupSpec::parallel
  std::vector<std::string> given;      ///< as GroupSpec::given
  std::vector<RankBlock> blocks = {};  ///< of its ranks, in order; empty: on this host
};

/// Reads the file. Errc::usage with every problem on a line of its own: unknown keys and roles
/// (with the nearest known one), values out of range, roles that the algorithm of `config` needs
/// and that are missing, roles that it does not use, hosts that are not there.
Result<ClusterFile> read_cluster(const std::string& path, const config::RunConfig& config);
/// Parses a cluster file from text; `where` is its name in messages.
Result<ClusterFile> parse_cluster(std::string_view text, const std::string& where,
                                  const config::RunConfig& config);

/// One node per group, in the order of the file. Several rollout groups are numbered.
std::vector<NodeSpec> nodes_of(const std::vector<GroupSpec>& groups);
/// The same nodes with their ranks on the hosts of the file. Errc::usage: not enough slots, with
/// the group's line.
Result<std::vector<NodeSpec>> placed_nodes_of(const ClusterFile& file);

/// The run's configuration as the node has it, with its own parallel.*.
config::RunConfig config_on(const NodeSpec& node, config::RunConfig config);

}  // namespace troupe::launch::cluster

// A run of groups as its files describe it: the configuration, the groups, and the hosts of their
// ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/cluster/cluster_file.h"
#include "launch/recipes/resolve.h"

namespace troupe::launch::cluster {

/// A run and its groups.
struct ClusterRun {
  recipes::Resolved run;  ///< with parallel.* of the policy's group
  std::vector<NodeSpec> nodes;
  Hosts hosts;  ///< of the cluster file; none with Via::local
};

/// Resolves the run and reads the cluster file at the path `cluster`, whose groups must be able to
/// hold the run's models. `via`: nullopt is ssh where the file has hosts, otherwise local. Throws
/// Failure.
ClusterRun resolve_cluster(const recipes::Sources& sources, const std::string& cluster,
                           std::optional<Via> via = {});

/// The ranks of the largest group.
int largest_group(const std::vector<NodeSpec>& nodes);

}  // namespace troupe::launch::cluster

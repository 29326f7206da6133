// The command that starts a group of processes, and the number of threads of each.
#pragma once

#include <string>
#include <vector>

#include "launch/cluster/cluster_file.h"

namespace troupe::launch::cluster {

/// The path of this program. Errc::io.
Result<std::string> own_program();

struct MpirunOptions {
  std::string scratch;             ///< folder for mpirun's own files
  bool network_namespace = false;  ///< start it by `troupe loopback` (network_namespace.h)
};

/// Arguments of the command: this program as a worker, under mpirun if the group has several ranks.
/// Errc::not_found without mpirun.
Result<std::vector<std::string>> worker_command(const NodeSpec& node, const MpirunOptions& mpi);

/// Threads of each process of `node` if train.threads is 0: the groups of one role run concurrently
/// and share the cores.
int threads_of(const NodeSpec& node, const std::vector<NodeSpec>& all);

}  // namespace troupe::launch::cluster

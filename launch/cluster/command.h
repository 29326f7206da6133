// How a group of processes is started, and how much of the machine each of them may use.
#pragma once

#include <string>
#include <vector>

#include "launch/cluster/cluster_file.h"

namespace troupe::launch {

/// The words of the command: the program itself as a worker, through mpirun when the group has
/// several ranks. `scratch` is for mpirun's own files. Errc::not_found without mpirun.
Result<std::vector<std::string>> worker_command(const NodeSpec& node, const std::string& scratch);

/// Threads of each process of `node` when the run does not say: groups of one role work at the same
/// time and share the cores.
int threads_of(const NodeSpec& node, const std::vector<NodeSpec>& all);

}  // namespace troupe::launch

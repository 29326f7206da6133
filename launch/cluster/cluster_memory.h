// Memory of the groups of a cluster, which are processes of one machine.
#pragma once

#include <string>
#include <vector>

#include "engine/base/environment/available_memory.h"
#include "engine/models/spec.h"
#include "launch/cluster/cluster_file.h"

namespace troupe::launch::cluster {

/// Weights, gradients and optimizer state of a group in bytes.
struct GroupMemory {
  std::string name;           ///< of the node
  std::uint64_t bytes = 0;    ///< of all its ranks
  std::uint64_t largest = 0;  ///< of the rank that has most
};

/// One for each node; `config` is the run's. Throws Failure if a model cannot be divided so.
std::vector<GroupMemory> memory_of_groups(const config::RunConfig& config,
                                          const std::vector<NodeSpec>& nodes,
                                          const engine::models::DecoderSpec& spec);

/// As check_memory(), for all groups together, and for the limits of a process.
Result<std::string> check_memory(const config::RunConfig& config,
                                 const std::vector<NodeSpec>& nodes,
                                 const engine::models::DecoderSpec& spec,
                                 const AvailableMemory& room);

}  // namespace troupe::launch::cluster

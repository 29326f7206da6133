// A batch script for Slurm that starts a run of several groups.
#pragma once

#include <string>
#include <vector>

#include "launch/cluster/cluster_file.h"

namespace troupe::launch::cluster {

struct SbatchOptions {
  std::string file;                ///< where the script is written, for its first line
  std::string program;             ///< path of troupe
  std::string cluster;             ///< path of the cluster file
  std::vector<std::string> words;  ///< train, and its options
  int threads = 0;                 ///< train.threads; 0: one processor for each rank
};

/// A script for sbatch (Slurm 22.05): an allocation with one task for each rank, and a loop that
/// starts `troupe launch --via slurm` again after an end that a restart may cure.
std::string sbatch_script(const std::vector<NodeSpec>& nodes, const Hosts& hosts,
                          const SbatchOptions& options);

}  // namespace troupe::launch::cluster

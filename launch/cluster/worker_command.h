// The command that starts a group of processes on this host, and the number of threads of each.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launch/cluster/cluster_file.h"

namespace troupe::launch::cluster {

/// The path of this program. Errc::io.
Result<std::string> own_program();
/// The path of a program in PATH; "": none.
std::string in_path(const std::string& program);

struct MpirunOptions {
  std::string scratch;             ///< folder for mpirun's own files; "": its own choice
  bool network_namespace = false;  ///< start it by `troupe loopback` (network_namespace.h)
};

/// `troupe worker` with its options; `program` is the path of troupe.
std::vector<std::string> worker_words(const std::string& program, const NodeSpec& node);
/// mpirun with the options of every group and `mca` parameters.
std::vector<std::string> mpirun_words(const std::string& mpirun,
                                      const std::vector<std::pair<std::string, std::string>>& mca);
/// All ranks of a group on one host: the worker, under `mpirun` if there are several.
std::vector<std::string> group_words(const std::string& program, const std::string& mpirun,
                                     const NodeSpec& node, const MpirunOptions& options);

/// Arguments of the command: this program as a worker, under mpirun if the group has several ranks.
/// Errc::not_found without mpirun.
Result<std::vector<std::string>> worker_command(const NodeSpec& node, const MpirunOptions& mpi);

/// The processes between which the processors of a host are divided: the ranks of `node`'s role on
/// the host that has most of them.
int ranks_together(const NodeSpec& node, const std::vector<NodeSpec>& all);

}  // namespace troupe::launch::cluster

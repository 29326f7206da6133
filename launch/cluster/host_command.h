// The command that starts a group on the hosts of its ranks: ssh and mpirun, or srun.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/cluster/cluster_file.h"
#include "launch/cluster/worker_command.h"

namespace troupe::launch::cluster {

/// Whether all ranks of a group are on the controller's host.
bool is_here(const NodeSpec& node, const Hosts& hosts);

/// Those of which that is so.
std::vector<NodeSpec> nodes_here(std::vector<NodeSpec> nodes, const Hosts& hosts);

/// How a group is started from the controller's host, and where it reaches the controller.
struct HostStart {
  std::vector<std::string> command;
  std::string endpoint;
};

struct HostStartOptions {
  MpirunOptions mpi;           ///< of groups on one host
  std::string local_endpoint;  ///< of the controller, for processes of its host
  std::string tcp_endpoint;    ///< of the controller, for others
  /// Of the groups with ranks on several hosts: how many there are, and which of them this is.
  int divided_groups = 0, divided_number = 0;
};

/// Starts a group in the working directory of this process:
///   - all ranks here: worker_command()
///   - all ranks on another host: the same command there, by ssh. Several ranks open no ports: they
///     are in a network namespace, and reach the controller through a socket that ssh forwards.
///   - ranks on several hosts: one mpirun here, which starts its daemons by ssh. Their messages use
///     Hosts::mpi_network and Hosts::mpi_ports, and a connection that is interrupted ends the group
///     within seconds (oob_tcp_keepalive_*; Open MPI waits for minutes by default).
///   - Via::slurm: a step of the allocation; a rank that fails ends it (--kill-on-bad-exit)
/// Errc::not_found without ssh, mpirun or srun; usage: ranks on several hosts without mpi.network,
/// or fewer ports than they need.
Result<HostStart> host_start(const NodeSpec& node, const Hosts& hosts,
                             const HostStartOptions& options);

/// Processors of each rank of a step: SLURM_CPUS_PER_TASK, or 1.
int processors_of_task();

/// The ssh that host_start() uses, up to the name of the host.
std::vector<std::string> ssh_words(const std::string& ssh);

}  // namespace troupe::launch::cluster

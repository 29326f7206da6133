// The hosts of a cluster file, and the ranks of its groups on them.
//
//   controller: {address: 10.0.0.1, port: 7000}
//   mpi: {network: 10.0.0.0/24, ports: 20000-20999}
//   hosts:
//     - {name: a, slots: 4, address: 10.0.0.1}
//     - {name: b, slots: 4, address: 10.0.0.2, program: /opt/troupe/bin/troupe}
//   groups:
//     - {role: policy, hosts: [a, b], parallel: {dp: 4}}
//     - {role: rollout, host: b}
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "launch/cluster/cluster_problems.h"
#include "launch/config/yaml.h"

namespace troupe::launch::cluster {

/// How groups are started: all on this host; by ssh on the hosts of the cluster file; as steps of
/// the Slurm allocation that this process is in.
enum class Via { local, ssh, slurm };
constexpr std::array<std::string_view, 3> names_of(Via) {
  return {"local", "ssh", "slurm"};
}

struct HostSpec {
  std::string name;     ///< in the cluster file and in messages
  int slots = 1;        ///< ranks that it runs at a time
  std::string address;  ///< for ssh and mpirun: a name or an IPv4 address; default: `name`
  std::string program;  ///< absolute path of troupe there; "": the same path as here
};

/// Ports first to last, both included.
struct PortRange {
  int first = 20000, last = 20999;
};

/// The keys of a cluster file that describe hosts.
struct Hosts {
  Via via = Via::ssh;
  std::vector<HostSpec> all;       ///< empty: this host only, or where Slurm places the ranks
  std::string controller_address;  ///< IPv4 address at which the controller listens
  int controller_port = 0;         ///< 0: a free one
  std::string mpi_network;         ///< networks (CIDR) or interfaces between ranks of one group
  PortRange mpi_ports;             ///< of mpirun and the ranks of groups on several hosts

  const HostSpec* find(std::string_view name) const;
  /// Whether groups on the host are processes of this one.
  bool is_here(const HostSpec& host) const {
    return via != Via::slurm && host.address == controller_address;
  }
};

/// Reads the keys controller, mpi and hosts of a cluster file's map.
Hosts read_hosts(const config::YamlNode& root, ClusterProblems& problems);
/// The keys that read_hosts() reads.
const std::vector<std::string>& host_keys();
/// Reads `host:` or `hosts:` of a group. Names that are not in `hosts` are problems.
std::vector<std::string> read_host_names(const config::YamlNode& value, const Hosts& hosts,
                                         ClusterProblems& problems);

/// The first IPv4 address of this host's name that is not a loopback address. Errc::not_found.
Result<std::string> address_of_this_host();

/// Consecutive ranks of a group on a host.
struct RankBlock {
  std::string host;
  int ranks = 0;
  bool operator==(const RankBlock&) const = default;
};

/// The free slots of hosts.
class Slots {
 public:
  explicit Slots(const Hosts& hosts);
  /// Takes slots for a group of `ranks` ranks on the hosts that are named, or on any: all on the
  /// first host with enough free slots, otherwise blocks on the hosts in their order. Errc::usage:
  /// not enough.
  Result<std::vector<RankBlock>> take(int ranks, const std::vector<std::string>& names);

 private:
  std::vector<RankBlock> free_;  // in the order of the file
};

}  // namespace troupe::launch::cluster

#include "launch/cluster/host_command.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "engine/base/random/secret.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/shell_word.h"
#include "engine/base/text/text.h"

namespace troupe::launch::cluster {
namespace {

Result<std::string> needed(const std::string& program, const NodeSpec& node,
                           std::string_view package) {
  std::string path = in_path(program);
  if (path.empty())
    return fail(Errc::not_found, cat("the group ", node.name, " is on other hosts and needs ",
                                     program, ", which is not in PATH; install ", package));
  return path;
}

Result<std::string> working_directory() {
  std::error_code failed;
  std::string path = std::filesystem::current_path(failed).string();
  if (failed) return fail(Errc::io, cat("cannot find the working directory: ", failed.message()));
  return path;
}

Result<std::string> program_on(const HostSpec& host) {
  return host.program.empty() ? own_program() : Result<std::string>(host.program);
}

/// What ssh forwards from the other host to the controller: a socket with a name that nobody
/// guesses.
struct Forward {
  std::string socket, target;
};

std::optional<Forward> forward_for(const NodeSpec& node, const HostStartOptions& options) {
  constexpr std::string_view scheme = "tcp://";
  if (node.parallel.ranks() == 1 || !options.mpi.network_namespace) return std::nullopt;
  return Forward{cat("/tmp/troupe-", random_token()), options.tcp_endpoint.substr(scheme.size())};
}

// ssh passes its words to the shell of the other host.
Result<HostStart> by_ssh(const NodeSpec& node, const HostSpec& host,
                         const HostStartOptions& options) {
  const auto ssh = needed("ssh", node, "openssh-client");
  RETURN_IF_ERROR(ssh);
  const auto directory = working_directory();
  RETURN_IF_ERROR(directory);
  const auto program = program_on(host);
  RETURN_IF_ERROR(program);
  const std::optional<Forward> forward = forward_for(node, options);
  std::string command;
  for (const std::string& word :
       group_words(*program, "mpirun", node, {"", options.mpi.network_namespace}))
    command += cat(" ", shell_word(word));
  std::vector<std::string> words = ssh_words(*ssh);
  std::string script = cat("cd ", shell_word(*directory), " && ");
  if (forward) {
    words.insert(words.end(), {"-o", "ExitOnForwardFailure=yes", "-R",
                               cat(forward->socket, ":", forward->target)});
    script += cat("{", command, "; code=$?; rm -f ", forward->socket, "; exit $code; }");
  } else {
    script += cat("exec", command);
  }
  words.insert(words.end(), {host.address, script});
  return HostStart{std::move(words),
                   forward ? cat("ipc://", forward->socket) : options.tcp_endpoint};
}

/// The ports of a group on several hosts: mpirun and its daemons listen on all ports that they are
/// given, so each group has its own; the ranks of all groups share the rest.
struct MpiPorts {
  PortRange daemons, ranks;
};

Result<MpiPorts> ports_of(const NodeSpec& node, const Hosts& hosts,
                          const HostStartOptions& options) {
  // More than one, because a port may not be bound again for a minute after its group has ended.
  constexpr int each = 4, fewest_of_ranks = 8;
  const auto [first, last] = hosts.mpi_ports;
  const int needed = each * options.divided_groups + fewest_of_ranks;
  if (last - first + 1 < needed)
    return fail(Errc::usage, cat(node.name, ": mpi.ports: ", options.divided_groups,
                                 " groups on several hosts need at least ", needed,
                                 " ports, found ", first, "-", last));
  const int own = first + each * options.divided_number;
  return MpiPorts{{own, own + each - 1}, {first + each * options.divided_groups, last}};
}

// Open MPI listens for IPv6, too, wherever the system has it.
std::vector<std::pair<std::string, std::string>> btl_parameters(const Hosts& hosts,
                                                                PortRange ports) {
  std::vector<std::pair<std::string, std::string>> all{{"btl", "self,vader,tcp"},
                                                       {"btl_tcp_if_include", hosts.mpi_network}};
  for (const char* family : {"v4", "v6"}) {
    all.emplace_back(cat("btl_tcp_port_min_", family), std::to_string(ports.first));
    all.emplace_back(cat("btl_tcp_port_range_", family),
                     std::to_string(ports.last - ports.first + 1));
  }
  return all;
}

Result<> check_network(const NodeSpec& node, const Hosts& hosts) {
  if (!hosts.mpi_network.empty()) return {};
  return fail(Errc::usage, cat(node.name,
                               " has ranks on several hosts: set mpi: {network: ...} in the "
                               "cluster file to the network or the interfaces between them, such "
                               "as 10.0.0.0/24"));
}

Result<HostStart> by_mpirun(const NodeSpec& node, const Hosts& hosts,
                            const HostStartOptions& options) {
  const auto mpirun = needed("mpirun", node, "openmpi-bin");
  RETURN_IF_ERROR(mpirun);
  const auto ssh = needed("ssh", node, "openssh-client");
  RETURN_IF_ERROR(ssh);
  const auto directory = working_directory();
  RETURN_IF_ERROR(directory);
  RETURN_IF_ERROR(check_network(node, hosts));
  const auto ports = ports_of(node, hosts, options);
  RETURN_IF_ERROR(ports);
  const std::string daemon_ports = cat(ports->daemons.first, "-", ports->daemons.last);
  auto parameters = btl_parameters(hosts, ports->ranks);
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"plm", "rsh"},
           {"plm_rsh_agent", join(ssh_words(*ssh), " ")},
           {"oob_tcp_if_include", hosts.mpi_network},
           {"oob_tcp_dynamic_ipv4_ports", daemon_ports},
           {"oob_tcp_dynamic_ipv6_ports", daemon_ports},
           {"oob_tcp_keepalive_time", "1"},
           {"oob_tcp_keepalive_intvl", "1"},
           {"oob_tcp_keepalive_probes", "2"}})
    parameters.emplace_back(name, value);
  HostStart start{mpirun_words(*mpirun, parameters), options.tcp_endpoint};
  auto& words = start.command;
  bool next = false;
  for (const RankBlock& block : node.blocks) {
    const HostSpec& host = *hosts.find(block.host);
    const auto program = program_on(host);
    RETURN_IF_ERROR(program);
    if (std::exchange(next, true)) words.emplace_back(":");
    const std::string ranks = std::to_string(block.ranks);
    words.insert(words.end(),
                 {"--host", cat(host.address, ":", ranks), "--wdir", *directory, "-n", ranks});
    for (const std::string& word : worker_words(*program, node)) words.push_back(word);
  }
  return start;
}

Result<HostStart> by_srun(const NodeSpec& node, const Hosts& hosts,
                          const HostStartOptions& options) {
  const auto srun = needed("srun", node, "slurm-client");
  RETURN_IF_ERROR(srun);
  const auto directory = working_directory();
  RETURN_IF_ERROR(directory);
  const auto program = own_program();
  RETURN_IF_ERROR(program);
  const int ranks = node.parallel.ranks();
  // --mem=0: the steps of the allocation share its memory, where a step takes all of it by default.
  std::vector<std::string> words{*srun,
                                 "--exact",
                                 ranks == 1 ? "--mpi=none" : "--mpi=pmix",
                                 "--kill-on-bad-exit=1",
                                 "--mem=0",
                                 "--input=0",
                                 cat("--job-name=", node.name),
                                 cat("--chdir=", *directory),
                                 cat("--ntasks=", ranks),
                                 cat("--cpus-per-task=", processors_of_task())};
  if (!node.blocks.empty()) {
    std::vector<std::string> tasks;
    for (const RankBlock& block : node.blocks) tasks.insert(tasks.end(), block.ranks, block.host);
    words.insert(words.end(), {"--distribution=arbitrary", cat("--nodes=", node.blocks.size()),
                               cat("--nodelist=", join(tasks, ","))});
  }
  // Without a network Open MPI chooses; ranks of one host use shared memory anyway.
  if (ranks > 1 && node.blocks.size() != 1 && !hosts.mpi_network.empty()) {
    words.emplace_back("env");
    for (const auto& [name, value] : btl_parameters(hosts, hosts.mpi_ports))
      words.push_back(cat("OMPI_MCA_", name, "=", value));
  }
  for (const std::string& word : worker_words(*program, node)) words.push_back(word);
  return HostStart{std::move(words), options.tcp_endpoint};
}

}  // namespace

int processors_of_task() {
  const char* text = std::getenv("SLURM_CPUS_PER_TASK");
  return std::max(1, parse_number<int>(text ? text : "").value_or(1));
}

bool is_here(const NodeSpec& node, const Hosts& hosts) {
  if (hosts.via == Via::slurm) return false;
  return std::ranges::all_of(
      node.blocks, [&](const RankBlock& block) { return hosts.is_here(*hosts.find(block.host)); });
}

std::vector<NodeSpec> nodes_here(std::vector<NodeSpec> nodes, const Hosts& hosts) {
  std::erase_if(nodes, [&](const NodeSpec& node) { return !is_here(node, hosts); });
  return nodes;
}

std::vector<std::string> ssh_words(const std::string& ssh) {
  // Never asks for a password, and ends some seconds after the other host was last heard.
  return {ssh,
          "-o",
          "BatchMode=yes",
          "-o",
          "ConnectTimeout=10",
          "-o",
          "ServerAliveInterval=1",
          "-o",
          "ServerAliveCountMax=3"};
}

Result<HostStart> host_start(const NodeSpec& node, const Hosts& hosts,
                             const HostStartOptions& options) {
  if (hosts.via == Via::slurm) return by_srun(node, hosts, options);
  if (is_here(node, hosts)) {
    auto command = worker_command(node, options.mpi);
    RETURN_IF_ERROR(command);
    return HostStart{std::move(*command), options.local_endpoint};
  }
  if (node.blocks.size() == 1) return by_ssh(node, *hosts.find(node.blocks.front().host), options);
  return by_mpirun(node, hosts, options);
}

}  // namespace troupe::launch::cluster

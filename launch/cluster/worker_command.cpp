#include "launch/cluster/worker_command.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "engine/base/json/fields.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/run/rank_resources.h"

namespace troupe::launch::cluster {
namespace {

std::string in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const auto colon = std::min(rest.find(':'), rest.size());
    const std::string file = cat(rest.substr(0, colon), "/", program);
    if (colon > 0 && ::access(file.c_str(), X_OK) == 0) return file;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return "";
}

}  // namespace

Result<std::string> own_program() {
  std::error_code failed;
  std::string self = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  if (failed)
    return fail(Errc::io, cat("cannot find the path of this program: ", failed.message()));
  return self;
}

Result<std::vector<std::string>> worker_command(const NodeSpec& node, const MpirunOptions& mpi) {
  const auto self = own_program();
  RETURN_IF_ERROR(self);
  const std::vector<std::string> worker{*self,         "worker",
                                        "--log-level", std::string(name_of(log_level())),
                                        "--timeout",   std::to_string(node.parallel.timeout)};
  if (node.parallel.ranks() == 1) return worker;
  const std::string mpirun = in_path("mpirun");
  if (mpirun.empty())
    return fail(Errc::not_found,
                cat("the group ", node.name, " has ", node.parallel.ranks(),
                    " ranks and needs mpirun, which is not in PATH; install openmpi-bin"));
  std::vector<std::string> arguments;
  if (mpi.network_namespace) arguments = {*self, "loopback", "--"};
  // Allows root and more ranks than cores; kills the other ranks at once when one dies; does not
  // bind ranks to cores. Ranks communicate through shared memory and open no ports.
  arguments.insert(arguments.end(), {mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to",
                                     "none", "--tag-output"});
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"orte_tmpdir_base", mpi.scratch},
        {"odls_base_sigkill_timeout", "0"},
        {"btl", "self,vader"},
        // Ranks cannot read each other's memory: they are not dumpable.
        {"btl_vader_single_copy_mechanism", "none"},
        {"oob_tcp_if_include", "lo"}})
    arguments.insert(arguments.end(), {"--mca", name, value});
  arguments.insert(arguments.end(), {"-n", std::to_string(node.parallel.ranks())});
  arguments.insert(arguments.end(), worker.begin(), worker.end());
  return arguments;
}

int threads_of(const NodeSpec& node, const std::vector<NodeSpec>& all) {
  int ranks = 0;
  for (const NodeSpec& each : all) ranks += each.role == node.role ? each.parallel.ranks() : 0;
  return run::part_of_process(ranks);
}

}  // namespace troupe::launch::cluster

#include "launch/cluster/worker_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"

namespace troupe::launch::cluster {

Result<std::string> own_program() {
  std::error_code failed;
  std::string self = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  if (failed)
    return fail(Errc::io, cat("cannot find the path of this program: ", failed.message()));
  return self;
}

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

std::vector<std::string> worker_words(const std::string& program, const NodeSpec& node) {
  return {program,       "worker",
          "--log-level", std::string(name_of(log_level())),
          "--timeout",   std::to_string(node.parallel.timeout)};
}

// Allows root and more ranks than cores; kills the other ranks at once when one dies; does not bind
// ranks to cores.
std::vector<std::string> mpirun_words(const std::string& mpirun,
                                      const std::vector<std::pair<std::string, std::string>>& mca) {
  std::vector<std::string> words{mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to",
                                 "none", "--tag-output"};
  const auto add = [&](const std::string& name, const std::string& value) {
    words.insert(words.end(), {"--mca", name, value});
  };
  add("odls_base_sigkill_timeout", "0");
  // Ranks cannot read each other's memory: they are not dumpable.
  add("btl_vader_single_copy_mechanism", "none");
  for (const auto& [name, value] : mca) add(name, value);
  return words;
}

std::vector<std::string> group_words(const std::string& program, const std::string& mpirun,
                                     const NodeSpec& node, const MpirunOptions& options) {
  const auto worker = worker_words(program, node);
  if (node.parallel.ranks() == 1) return worker;
  std::vector<std::string> words;
  if (options.network_namespace) words = {program, "loopback", "--"};
  // Ranks communicate through shared memory and open no ports.
  std::vector<std::pair<std::string, std::string>> mca{{"btl", "self,vader"},
                                                       {"oob_tcp_if_include", "lo"}};
  if (!options.scratch.empty()) mca.emplace_back("orte_tmpdir_base", options.scratch);
  for (const std::string& word : mpirun_words(mpirun, mca)) words.push_back(word);
  words.insert(words.end(), {"-n", std::to_string(node.parallel.ranks())});
  words.insert(words.end(), worker.begin(), worker.end());
  return words;
}

Result<std::vector<std::string>> worker_command(const NodeSpec& node, const MpirunOptions& mpi) {
  const auto self = own_program();
  RETURN_IF_ERROR(self);
  std::string mpirun;
  if (node.parallel.ranks() > 1 && (mpirun = in_path("mpirun")).empty())
    return fail(Errc::not_found,
                cat("the group ", node.name, " has ", node.parallel.ranks(),
                    " ranks and needs mpirun, which is not in PATH; install openmpi-bin"));
  return group_words(*self, mpirun, node, mpi);
}

int ranks_together(const NodeSpec& node, const std::vector<NodeSpec>& all) {
  std::map<std::string, int> ranks;
  for (const NodeSpec& each : all) {
    if (each.role != node.role) continue;
    if (each.blocks.empty()) ranks[""] += each.parallel.ranks();
    for (const RankBlock& block : each.blocks) ranks[block.host] += block.ranks;
  }
  int most = node.blocks.empty() ? ranks[""] : 1;
  for (const RankBlock& block : node.blocks) most = std::max(most, ranks[block.host]);
  return most;
}

}  // namespace troupe::launch::cluster

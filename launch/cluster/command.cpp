#include "launch/cluster/command.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "engine/base/text.h"
#include "launch/run/rank_resources.h"

namespace troupe::launch {
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

Result<std::vector<std::string>> worker_command(const NodeSpec& node, const std::string& scratch) {
  std::error_code failed;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  if (failed) return fail(Errc::io, cat("cannot find this program's own file: ", failed.message()));
  if (node.grid.ranks() == 1) return std::vector<std::string>{self, "worker"};
  const std::string mpirun = in_path("mpirun");
  if (mpirun.empty())
    return fail(Errc::not_found,
                cat("the group ", node.name, " has ", node.grid.ranks(),
                    " ranks and needs mpirun, which is not in PATH; install openmpi-bin"));
  // As root and with more ranks than cores, too; when one rank dies the others are killed at once;
  // ranks choose their own cores.
  std::vector<std::string> words{mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to",
                                 "none", "--tag-output"};
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"orte_tmpdir_base", scratch},
        {"odls_base_sigkill_timeout", "0"}})
    words.insert(words.end(), {"--mca", name, value});
  words.insert(words.end(), {"-n", std::to_string(node.grid.ranks()), self, "worker"});
  return words;
}

int threads_of(const NodeSpec& node, const std::vector<NodeSpec>& all) {
  int ranks = 0;
  for (const NodeSpec& each : all) ranks += each.role == node.role ? each.grid.ranks() : 0;
  return part_of_process(ranks);
}

}  // namespace troupe::launch

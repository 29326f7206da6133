#include "launch/cluster/sbatch.h"

#include <algorithm>

#include "engine/base/text/shell_word.h"
#include "engine/base/text/text.h"

namespace troupe::launch::cluster {
namespace {

std::string directives(const std::vector<NodeSpec>& nodes, const Hosts& hosts, int threads) {
  int ranks = 0;
  for (const NodeSpec& node : nodes) ranks += node.parallel.ranks();
  std::vector<std::string> names;
  for (const HostSpec& host : hosts.all) names.push_back(host.name);
  std::string out;
  const auto add = [&](const std::string& option, const std::string& why) {
    out += cat("#SBATCH ", option);
    if (!why.empty())
      out += cat(std::string(option.size() < 30 ? 30 - option.size() : 1, ' '), "# ", why);
    out += "\n";
  };
  add("--job-name=troupe", "");
  if (!names.empty()) {
    add(cat("--nodelist=", join(names, ",")), "the hosts of the cluster file");
    add(cat("--nodes=", names.size()), "");
    const auto most = std::ranges::max_element(hosts.all, {}, &HostSpec::slots);
    add(cat("--ntasks-per-node=", most->slots), "slots");
  } else {
    add(cat("--ntasks=", ranks), "one for each rank");
  }
  add(cat("--cpus-per-task=", std::max(1, threads)), "threads of a rank");
  add("--no-kill", "the failure of a node does not end the job");
  add("--signal=B:USR1@300", "a checkpoint before the time limit");
  add("--open-mode=append", "");
  return out;
}

// Bash returns from wait when a trap has run, while the program goes on.
constexpr std::string_view loop = R"sh(restarts=3
for ((attempt = 0; ; ++attempt)); do
  "${run[@]}" &
  process=$!
  trap 'kill -USR1 "$process"' USR1
  trap 'kill -TERM "$process"' TERM
  while :; do
    wait "$process"
    code=$?
    kill -0 "$process" 2>/dev/null || break
  done
  case $code in
    8 | 9 | 11 | 137) ;; # a deadline, a lost connection, a process or the program itself died: resume
    *) exit "$code" ;;   # complete, interrupted after a checkpoint, or what a restart does not cure
  esac
  ((attempt < restarts)) || exit "$code"
  echo "exit code $code: start $((attempt + 2)) of $((restarts + 1))" >&2
  sleep 5
done
)sh";

}  // namespace

std::string sbatch_script(const std::vector<NodeSpec>& nodes, const Hosts& hosts,
                          const SbatchOptions& options) {
  std::vector<std::string> words{options.program, "launch", "--cluster", options.cluster,
                                 "--via",         "slurm",  "--"};
  words.insert(words.end(), options.words.begin(), options.words.end());
  for (std::string& word : words) word = shell_word(word);
  return cat(
      "#!/bin/bash\n# Submit it: sbatch ", shell_word(options.file),
      "\n# Written by troupe launch --write-sbatch. Edit it: add a partition, an account, a "
      "time limit.\n",
      directives(nodes, hosts, options.threads),
      "#\n# Nodes that are simulated on one machine need TmpFS=...%n in slurm.conf: the PMIx "
      "plugins of nodes that share /tmp collide.\n\nrun=(",
      join(words, " "), ")\n", loop);
}

}  // namespace troupe::launch::cluster

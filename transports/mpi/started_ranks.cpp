#include "transports/mpi/started_ranks.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "engine/base/text/parse.h"

namespace troupe::transports::mpi {
namespace {

/// The number in an environment variable, or `otherwise`.
int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  if (!text) return otherwise;
  const int value = parse_number<int>(text).value_or(-1);
  return value >= 0 ? value : otherwise;
}

/// Entry `node` of Slurm's list of a number per node: "2(x3),1" is 2, 2, 2, 1. 0: it has none.
int entry_of_list(std::string_view list, int node) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    const std::string_view entry = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const auto open = std::min(entry.find("(x"), entry.size());
    int times = 1;
    if (open < entry.size() && entry.ends_with(')'))
      times = parse_number<int>(entry.substr(open + 2, entry.size() - open - 3)).value_or(1);
    if (node < times) return parse_number<int>(entry.substr(0, open)).value_or(0);
    node -= times;
  }
  return 0;
}

StartedRanks of_slurm() {
  StartedRanks ranks;
  ranks.size = number_of("SLURM_STEP_NUM_TASKS", 0);
  ranks.started = ranks.size > 0 && std::getenv("PMIX_RANK") != nullptr;
  if (!ranks.started) return {};
  ranks.rank = number_of("SLURM_PROCID", 0);
  ranks.local_rank = number_of("SLURM_LOCALID", 0);
  const char* per_node = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  ranks.local_size = entry_of_list(per_node ? per_node : "", number_of("SLURM_NODEID", 0));
  return ranks;
}

}  // namespace

StartedRanks started_ranks() {
  StartedRanks ranks;
  ranks.size = number_of("OMPI_COMM_WORLD_SIZE", 0);
  ranks.started = ranks.size > 0;
  if (!ranks.started) return of_slurm();
  ranks.rank = number_of("OMPI_COMM_WORLD_RANK", 0);
  ranks.local_size = number_of("OMPI_COMM_WORLD_LOCAL_SIZE", 0);
  ranks.local_rank = number_of("OMPI_COMM_WORLD_LOCAL_RANK", 0);
  return ranks;
}

}  // namespace troupe::transports::mpi

// `troupe explain`: the resolved configuration of a run, its loss, memory and data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launch/cluster/hosts.h"
#include "launch/commands/explain/machine.h"
#include "launch/recipes/resolve.h"

namespace troupe::launch::commands {

struct ExplainOptions {
  recipes::Sources sources;
  bool reference = false;       ///< print the reference of all keys instead
  bool request_fields = false;  ///< print the fields of requests to a server instead
  bool all = false;             ///< print the keys with their defaults, too
  bool data = true;             ///< read the data, and estimate the run
  std::int64_t examples = 0;    ///< instead, print the first examples as JSON lines; 0: none
  MachineOptions machine = {};
  std::string cluster = {};              ///< path of a cluster file; "": the run is no launch
  std::optional<cluster::Via> via = {};  ///< how its groups would be started
};
/// Returns the exit code. Throws Failure.
int explain(const ExplainOptions& options);

}  // namespace troupe::launch::commands

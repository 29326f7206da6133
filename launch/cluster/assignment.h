// Assignment: what a worker is told, as one line of JSON through its stdin, so that no key is ever
// in argv or in the environment.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/parallel/grid.h"
#include "launch/config/run_config.h"

namespace troupe::launch {

struct Assignment {
  std::string role, node;            ///< "rollout", "rollout-0"
  std::string endpoint, server_key;  ///< of the controller's hub
  std::string public_key, secret_key;
  engine::parallel::Grid grid;
  RunConfig config;
  std::string from;  ///< the checkpoint that the run goes on from, or ""
};

/// One line, with its newline.
std::string to_line(const Assignment& assignment);
/// Errc::bad_input, usage.
Result<Assignment> assignment_of(std::string_view line);

}  // namespace troupe::launch

// Assignment: the task of a worker, sent as one line of JSON to its stdin, so that no key appears
// in argv or in the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/parallel/grid.h"
#include "launch/cluster/host_inputs.h"
#include "launch/config/run_config.h"
#include "launch/recipes/role.h"

namespace troupe::launch::cluster {

struct Assignment {
  recipes::Role role = recipes::Role::policy;
  std::string node;                  ///< name of the group's node: "rollout-0"
  std::string endpoint, server_key;  ///< address and public key of the controller's hub
  std::string public_key, secret_key;
  engine::parallel::Grid grid;
  config::RunConfig config;
  std::string resume_from;  ///< the checkpoint that the run resumes from, or ""
  int ranks_together = 1;   ///< that divide the processors of a host, without train.threads
  /// For groups on other hosts: the controller's program, and the files that the role reads.
  std::string build;
  std::vector<InputFile> inputs;
};

/// One line of JSON with its newline.
std::string to_line(const Assignment& assignment);
/// Parses a line of to_line(). Errc::bad_input, usage.
Result<Assignment> assignment_of(std::string_view line);

}  // namespace troupe::launch::cluster

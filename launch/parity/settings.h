// What a comparison is made with: the options of the command, checked.
#pragma once

#include <vector>

#include "launch/config/run_config.h"
#include "launch/parity/parity.h"
#include "launch/parity/paths.h"

namespace troupe::launch::parity {

struct Settings {
  ParityOptions options;
  config::RunConfig config;        ///< its rollout.* and parallel.*
  std::vector<const Path*> paths;  ///< `score` first

  const engine::parallel::Grid& grid() const { return config.parallel; }
  const engine::generate::SamplingParams& sampling() const { return config.rollout.sampling; }
  bool trains() const;
};

/// Errc::usage for an unknown path or key, a value that is none of its key, and a grid with
/// replicas.
Result<Settings> settings_of(const ParityOptions& options);

}  // namespace troupe::launch::parity

// The section `profile` of a run file: MindSpeed's --profile-... options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::launch {

struct ProfileConfig {
  bool enabled = false;
  std::int64_t step_start = 10,
               step_end = 12;     ///< [start, end), in the run's steps, which count from 1
  std::vector<double> ranks{-1};  ///< of each group; -1: all
  std::string level =
      "level0";  ///< level0: operators; level1: and communication; level2: and hardware counters
  bool with_cpu = false, with_stack = false, with_memory = false, record_shapes = false;
  std::string save_path;  ///< a folder; empty: profile in the run's output
};

}  // namespace troupe::launch

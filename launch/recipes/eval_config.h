// The section `eval` of a run file: held-out data, for the recipes that judge the policy by some.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::launch {

struct EvalConfig {
  std::vector<std::string> path;  ///< files of rows that are never trained on; empty: none
  std::int64_t every = 0;         ///< steps between two looks; 0: only after the last step
};

}  // namespace troupe::launch

// Settings of a run of a small model, whose data and output are not read.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/text/text.h"
#include "launch/recipes/resolve.h"

namespace troupe::launch {

inline config::RunConfig config_with(std::vector<std::string> sets,
                                     const std::string& algorithm = "sft") {
  sets.push_back(cat("model=", TROUPE_TEST_DATA, "/models/stories260k/hf"));
  for (const char* path : {"data.path=D", "output=O"}) sets.emplace_back(path);
  return value_or_throw(
             recipes::resolve(
                 {.algorithm = algorithm, .sets = std::move(sets), .check_files = false}))
      .config;
}

}  // namespace troupe::launch

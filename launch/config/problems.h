// What is wrong or odd with a configuration as a whole.
#pragma once

#include "launch/recipes/judging.h"

namespace troupe::launch {

/// Missing keys, values out of their range, and combinations that make no sense. Each message says
/// what would be valid.
void judge(const RunConfig& config, const Origins& origins, Findings& findings);
/// Whether the model, the data and the reference are there.
void judge_files(const RunConfig& config, Findings& findings);

}  // namespace troupe::launch

// Profiling for every algorithm: the keys of the section `profile`, and what is wrong with them.
#pragma once

#include <span>

#include "engine/base/error.h"
#include "launch/config/fields.h"
#include "launch/recipes/judging.h"

namespace troupe::launch {

std::span<const Field> profile_fields();
void judge_profile(Judging& judging);
/// Errc::usage for a rank that a group of `ranks` does not have.
Result<> check_profile_ranks(const RunConfig& config, int ranks);

}  // namespace troupe::launch

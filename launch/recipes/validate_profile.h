// Checks of the section `profile`.
#pragma once

#include "engine/base/errors/error.h"
#include "launch/recipes/validate.h"

namespace troupe::launch::recipes {

void validate_profile(Validation& v);
/// Errc::usage for a rank that a group of `ranks` does not have.
Result<> check_profile_ranks(const config::RunConfig& config, int ranks);

}  // namespace troupe::launch::recipes

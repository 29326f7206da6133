// `troupe eval --compare`: two evaluations of the same tasks.
#pragma once

#include <string>

namespace troupe::launch::commands {

/// Prints the differences of the second folder of results from the first, as a table or as JSON.
/// Returns the exit code. Throws Failure.
int compare_evaluations(const std::string& first, const std::string& second, bool json);

}  // namespace troupe::launch::commands

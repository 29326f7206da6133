// Brace expansion.
#pragma once

#include <string>
#include <vector>

#include "launch/tools/migration/shell/limits.h"

namespace troupe::launch::tools::migration::shell {

/// a{b,c} and a{1..3} as the words they stand for. Throws Failure for more than a bound.
std::vector<std::string> braces(const std::string& raw, Budget& budget);

}  // namespace troupe::launch::tools::migration::shell

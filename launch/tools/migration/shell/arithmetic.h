// Arithmetic of bash: $((...)), ((...)), indexes and offsets.
#pragma once

#include <string>
#include <string_view>

#include "launch/tools/migration/shell/limits.h"
#include "launch/tools/migration/shell/state.h"

namespace troupe::launch::tools::migration::shell {

/// The decimal text of an expression whose `$` expansions are done; variables are read and assigned
/// by name. Unknown for an expression of something unknown, a division by zero and text that is no
/// expression. Throws Failure for one that nests too deeply.
Value arithmetic(std::string_view expression, std::size_t line, ShellState& state, Budget& budget);

}  // namespace troupe::launch::tools::migration::shell

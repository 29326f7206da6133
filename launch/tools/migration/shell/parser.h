// Reads a bash script into its syntax tree.
#pragma once

#include <cstddef>
#include <string_view>

#include "launch/tools/migration/shell/syntax.h"

namespace troupe::launch::tools::migration::shell {

/// Throws Failure: bad_input for text that is no bash script ("line 3: ..."), usage for commands
/// that nest too deeply.
NodePointer parse_script(std::string_view text, std::size_t first_line = 1);

/// The assignment that a word such as A=b, A+=b or A[1]=b is, without an array's parentheses;
/// nullopt for other words.
std::optional<Assignment> assignment_of(const Word& word);

}  // namespace troupe::launch::tools::migration::shell

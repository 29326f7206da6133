// Patterns of bash: *, ?, [...], with a backslash before a character that means itself.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "launch/tools/migration/shell/limits.h"

namespace troupe::launch::tools::migration::shell {

/// True if `pattern` means the whole of `text`.
bool matches(std::string_view pattern, std::string_view text, Budget& budget);

/// ${text#pattern} and ${text##pattern}: `text` without the shortest or longest beginning that
/// `pattern` means.
std::string without_prefix(std::string_view text, std::string_view pattern, bool longest,
                           Budget& budget);
/// ${text%pattern} and ${text%%pattern}.
std::string without_suffix(std::string_view text, std::string_view pattern, bool longest,
                           Budget& budget);
/// ${text/pattern/by}: the first match, or each one. `place`: '#' at the beginning only, '%' at the
/// end only, 0 anywhere.
std::string replaced(std::string_view text, std::string_view pattern, std::string_view by, bool all,
                     char place, Budget& budget);

}  // namespace troupe::launch::tools::migration::shell

// Words of a POSIX shell.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// `text` in single quotes, which a POSIX shell reads back as one word.
std::string shell_word(std::string_view text);

}  // namespace troupe

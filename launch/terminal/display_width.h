// Width of text on a terminal, in columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::launch::terminal {

/// Columns that UTF-8 text takes: 2 for East Asian wide characters and emoji, 0 for combining
/// marks. Ill-formed bytes and control characters count as 1.
std::size_t display_width(std::string_view text);

/// The longest prefix of whole characters that takes at most `columns`.
std::string_view fit_width(std::string_view text, std::size_t columns);

/// One line of well-formed UTF-8: control characters become spaces, ill-formed bytes U+FFFD.
std::string one_line(std::string_view text);

}  // namespace troupe::launch::terminal

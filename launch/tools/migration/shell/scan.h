// Where the quoted and substituted parts of a word of a shell script end.
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::launch::tools::migration::shell {

bool is_name_character(char c);
bool is_blank(char c);
/// The end of the name that begins at `begin`; `begin` if none does.
std::size_t end_of_name(std::string_view text, std::size_t begin);
bool is_name(std::string_view text);

/// The position after the part that begins at `at` with a backslash, a quotation mark, a backtick,
/// `$(`, `$((`, `${`, `$'`, `$"`, `<(` or `>(`; at + 1 for any other character. The end of the text
/// for a part that is not closed. Throws Failure for parts that nest too deeply.
std::size_t end_of_part(std::string_view text, std::size_t at);

/// True if a part as above begins at `at`.
bool begins_substitution(std::string_view text, std::size_t at);

}  // namespace troupe::launch::tools::migration::shell

// Functions shared by string methods and text filters: case, white space, stripping, replacing,
// lines. Python's rules, on UTF-8.
#pragma once

#include <functional>
#include <string>

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

std::string upper(const std::string& text);
std::string lower(const std::string& text);
std::string case_fold(const std::string& text);
std::string title(const std::string& text);
std::string capitalize(const std::string& text);
std::string swap_case(const std::string& text);
bool is_upper(const std::string& text);
bool is_lower(const std::string& text);
bool is_title(const std::string& text);

/// str.isspace() of one character: White_Space and the four information separators.
bool is_python_space(char32_t value);
/// str.isprintable() of one character.
bool is_printable(char32_t value);

/// Returns the text without the characters of `which` (white space when null) at its ends.
std::string strip_text(const std::string& text, const std::string* which, bool left, bool right);

/// Replaces at most `maximum` occurrences; all if it is negative.
Value replace_text(Runtime& runtime, const std::string& text, const std::string& old,
                   const std::string& with, std::int64_t maximum);

/// Calls `line` with each line of str.splitlines().
void for_each_line(std::string_view text, bool keep_ends,
                   const std::function<void(std::string_view)>& line);

enum class CharacterClass {
  decimal,
  digit,
  numeric,
  letter,
  letter_or_number,
  space,
  printable,
  ascii
};
/// Whether every character is of the class (an empty text: only for printable and ascii).
bool every(const std::string& text, CharacterClass wanted);
/// str.isidentifier().
bool is_identifier(const std::string& text);

/// Returns 0 to 9 for a decimal digit of any script, otherwise -1.
int digit_value(char32_t value);

/// markupsafe.escape: & < > ' and ".
std::string escape_html(const std::string& text);

}  // namespace troupe::engine::jinja

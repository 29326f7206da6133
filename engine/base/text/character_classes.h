// Character classes of Unicode (through ICU), as the tokenizers and the template language define
// them.
#pragma once

#include <string>

namespace troupe {

bool is_whitespace(char32_t value);  ///< property White_Space
bool is_numeric(char32_t value);     ///< general category N
/// ASCII punctuation and symbols, or general category P in Unicode 8.
bool is_punctuation(char32_t value);
// The reference library's tables of marks and controls are older than the latest Unicode version:
// later characters are neither.
bool is_mark(char32_t value);             ///< general category M in Unicode 9
bool is_nonspacing_mark(char32_t value);  ///< general category Mn in Unicode 8
bool is_control(char32_t value);          ///< general categories Cc, Cf, Co in Unicode 8
bool is_word(char32_t value);             ///< \w of Unicode regular expressions (UTS 18)
/// A character of the same class and length that PCRE2's tables contain, for a character that was
/// added to Unicode after them; other characters are returned unchanged.
char32_t older_equivalent(char32_t value);

/// Columns that a character takes on a terminal: 2 if its East_Asian_Width (UAX 11) is W or F,
/// which includes emoji; 0 for nonspacing and enclosing marks and format characters; otherwise 1.
int terminal_columns(char32_t value);

/// Appends the lower case of one character without regard to its neighbours: only U+0130 becomes
/// two characters.
void append_lower(std::string& out, char32_t value);

}  // namespace troupe

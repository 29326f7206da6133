// UTF-8 walked code point by code point, and the character classes that tokenizers speak of
// (Unicode, through ICU).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::engine::tokenizer {

/// The code point that starts at `text[at]` of valid UTF-8, and its length in bytes.
struct CodePoint {
  char32_t value = 0;
  std::size_t size = 1;
};
CodePoint code_point_at(std::string_view text, std::size_t at);

/// Bytes of the character that `lead` starts, in valid UTF-8.
inline std::size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

void append_utf8(std::string& out, char32_t value);

/// Code points in valid UTF-8.
std::size_t count_code_points(std::string_view text);

/// `text` with each maximal ill-formed part replaced by U+FFFD (as Rust's from_utf8_lossy and the
/// Unicode standard, section 3.9, do).
std::string repair_utf8(std::string_view text);

/// Length of the longest prefix of `text` that later bytes cannot change: everything but a
/// truncated character at the end.
std::size_t settled_utf8_prefix(std::string_view text);

bool is_whitespace(char32_t value);  ///< property White_Space
bool is_numeric(char32_t value);     ///< general category N
bool is_punctuation(
    char32_t value);  ///< ASCII punctuation and symbols, or general category P in Unicode 8
// The library's tables of marks and controls are older than Unicode's latest: what came later is
// neither.
bool is_mark(char32_t value);             ///< general category M in Unicode 9
bool is_nonspacing_mark(char32_t value);  ///< general category Mn in Unicode 8
bool is_control(char32_t value);          ///< general categories Cc, Cf, Co in Unicode 8
bool is_word(char32_t value);             ///< \w of Unicode regular expressions (UTS 18)
/// A character of the same class and length that PCRE2's tables know, for one that is younger than
/// they; others stay.
char32_t older_likeness(char32_t value);

/// Appends the lower case of one character without regard to its neighbours: only U+0130 becomes
/// two.
void append_lower(std::string& out, char32_t value);

}  // namespace troupe::engine::tokenizer

// UTF-8: decoding and encoding of code points, and repair of ill-formed text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// The code point that starts at `text[at]` of valid UTF-8, and its length in bytes.
struct CodePoint {
  char32_t value = 0;
  std::size_t size = 1;
};
CodePoint code_point_at(std::string_view text, std::size_t at);

/// Length in bytes of the character whose first byte is `lead`, in valid UTF-8.
inline std::size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

void append_utf8(std::string& out, char32_t value);

/// Number of code points of valid UTF-8.
std::size_t count_code_points(std::string_view text);

/// Returns `text` with each maximal ill-formed part replaced by U+FFFD (as Rust's from_utf8_lossy
/// and the Unicode standard, section 3.9, do).
std::string repair_utf8(std::string_view text);

/// Length of the longest prefix of `text` that does not end inside a character.
std::size_t complete_utf8_prefix(std::string_view text);

}  // namespace troupe

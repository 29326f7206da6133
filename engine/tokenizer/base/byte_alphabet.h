// The 256 characters in which byte-level tokenizers write bytes (GPT-2's bytes_to_unicode).
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace troupe::engine::tokenizer {

/// The character of each byte: printable Latin-1 is unchanged, the others are numbered from U+0100.
const std::array<std::string, 256>& byte_characters();

/// Appends the character of each byte of `bytes`.
void append_byte_characters(std::string& out, std::string_view bytes);

/// "<0x0A>": how vocabularies with byte fallback write a byte.
std::string fallback_piece(std::size_t byte);

/// Appends the bytes that the characters of `text` represent. Returns false and appends nothing if
/// a character represents no byte.
bool append_bytes_of(std::string& out, std::string_view text);

}  // namespace troupe::engine::tokenizer

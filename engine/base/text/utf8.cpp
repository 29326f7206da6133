#include "engine/base/text/utf8.h"

namespace troupe {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// The bytes from one position on: a whole character (ok), a maximal ill-formed part (!ok), or a
// part that more bytes could complete (truncated).
struct Utf8Sequence {
  std::size_t size;
  bool ok;
  bool truncated;
};

Utf8Sequence sequence_at(std::string_view text, std::size_t at) {
  const unsigned char lead = byte_at(text, at);
  if (lead < 0x80) return {1, true, false};
  if (lead < 0xC2 || lead > 0xF4) return {1, false, false};
  const std::size_t wanted = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned char low = 0x80, high = 0xBF;  // bounds of the second byte: no overlong forms, no
                                          // surrogates, nothing above U+10FFFF
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t i = 1; i < wanted; ++i) {
    if (at + i == text.size()) return {i, false, true};
    const unsigned char next = byte_at(text, at + i);
    if (next < low || next > high) return {i, false, false};
    low = 0x80;
    high = 0xBF;
  }
  return {wanted, true, false};
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const unsigned char lead = byte_at(text, at);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = utf8_length(text[at]);
  char32_t value = lead & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) value = (value << 6) | (byte_at(text, at + i) & 0x3Fu);
  return {value, size};
}

void append_utf8(std::string& out, char32_t value) {
  const auto put = [&](char32_t byte) {
    out += static_cast<char>(static_cast<unsigned char>(byte));
  };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | (value >> 6));
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | (value >> 12));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | (value >> 18));
    put(0x80 | ((value >> 12) & 0x3F));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Sequence part = sequence_at(text, at);
    if (part.ok) {
      out.append(text.substr(at, part.size));
    } else {
      out.append("\xEF\xBF\xBD");
    }
    at += part.size;
  }
  return out;
}

std::size_t complete_utf8_prefix(std::string_view text) {
  const std::size_t from = text.size() < 4 ? 0 : text.size() - 4;
  for (std::size_t at = text.size(); at-- > from;)
    if ((byte_at(text, at) & 0xC0) != 0x80)
      return sequence_at(text, at).truncated ? at : text.size();
  return text.size();
}

}  // namespace troupe

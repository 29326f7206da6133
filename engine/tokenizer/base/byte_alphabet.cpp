#include "engine/tokenizer/base/byte_alphabet.h"

#include "engine/base/text/utf8.h"

namespace troupe::engine::tokenizer {
namespace {

struct Tables {
  std::array<std::string, 256> character;
  std::array<int, 512> byte;  // of a code point; -1: none
};

Tables make_tables() {
  Tables tables;
  tables.byte.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const char32_t value = itself ? static_cast<char32_t>(byte) : next++;
    append_utf8(tables.character[static_cast<std::size_t>(byte)], value);
    tables.byte[value] = byte;
  }
  return tables;
}

const Tables& tables() {
  static const Tables value = make_tables();
  return value;
}

}  // namespace

const std::array<std::string, 256>& byte_characters() {
  return tables().character;
}

void append_byte_characters(std::string& out, std::string_view bytes) {
  for (const char c : bytes) out += tables().character[static_cast<unsigned char>(c)];
}

std::string fallback_piece(std::size_t byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

bool append_bytes_of(std::string& out, std::string_view text) {
  const std::size_t before = out.size();
  const auto& byte = tables().byte;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value >= byte.size() || byte[point.value] < 0) {
      out.resize(before);
      return false;
    }
    out += static_cast<char>(static_cast<unsigned char>(byte[point.value]));
    at += point.size;
  }
  return true;
}

}  // namespace troupe::engine::tokenizer

#include "engine/tokenizer/token_bytes.h"

#include "engine/tokenizer/base/byte_alphabet.h"

namespace troupe::engine::tokenizer {

namespace {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// The bytes of a token whose text is not whole characters: of byte fallback or a byte-level
/// vocabulary. Otherwise `text`.
std::string partial_bytes(const std::string& piece, std::string text) {
  for (std::size_t byte = 0x80; byte < 0x100; ++byte)
    if (piece == fallback_piece(byte)) return std::string(1, static_cast<char>(byte));
  std::string bytes;
  return append_bytes_of(bytes, piece) ? bytes : text;
}

}  // namespace

TokenBytes token_bytes(const Tokenizer& tokenizer, std::size_t vocabulary) {
  // Tokens at the beginning of a text may have other bytes, so they are decoded behind a letter.
  std::vector<TokenId> ids = tokenizer.encode("a", false);
  const std::string before = tokenizer.decode(ids, true);
  ids.push_back(0);
  TokenBytes out;
  out.bytes.resize(vocabulary);
  for (std::size_t id = 0; id < vocabulary; ++id) {
    ids.back() = static_cast<TokenId>(id);
    const std::string whole = tokenizer.decode(ids, true);
    if (!whole.starts_with(before)) continue;
    std::string text = whole.substr(before.size());
    if (text.find(replacement_character) != std::string::npos)
      text = partial_bytes(tokenizer.id_to_token(ids.back()), std::move(text));
    if (text.starts_with(' ') && !out.drops_first_space)
      out.drops_first_space = !tokenizer.decode(std::vector{ids.back()}, true).starts_with(' ');
    out.bytes[id] = std::move(text);
  }
  return out;
}

}  // namespace troupe::engine::tokenizer

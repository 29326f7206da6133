// SentencePiece's precompiled character map: a double-array trie of texts and what each becomes
// (the "precompiled_charsmap" of a model; format of sentencepiece normalizer.cc and of
// Darts-clone).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace troupe::engine::tokenizer {

class CharacterMap {
 public:
  /// From the bytes of the map. Errc::bad_input for a size that lies, a unit or a text out of
  /// range: afterwards every walk stays inside.
  static Result<CharacterMap> read(std::string_view bytes, std::string_view where);
  /// What the shortest key that begins `text` becomes, if there is one.
  std::optional<std::string_view> shortest(std::string_view text) const;

 private:
  bool is_sound() const;
  std::vector<std::uint32_t> units_;
  std::string texts_;  // ended by zeros
};

}  // namespace troupe::engine::tokenizer

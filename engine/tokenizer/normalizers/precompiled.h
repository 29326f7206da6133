// SentencePiece's precompiled character map: a double-array trie of texts and their replacements
// (the "precompiled_charsmap" of a model; format of sentencepiece normalizer.cc and of
// Darts-clone).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/normalizers/normalizer.h"

namespace troupe::engine::tokenizer {

class CharacterMap {
 public:
  /// Reads the bytes of the map. Errc::bad_input for a wrong size, or a unit or text out of range:
  /// lookups never read outside the map.
  static Result<CharacterMap> read(std::string_view bytes, std::string_view where);
  /// The replacement of the shortest key that is a prefix of `text`, if there is one.
  std::optional<std::string_view> shortest(std::string_view text) const;

 private:
  bool is_sound() const;
  std::vector<std::uint32_t> units_;
  std::string texts_;  // ended by zeros
};

/// The normalizer "Precompiled" (Hugging Face tokenizers, normalizers/precompiled.rs).
Result<std::unique_ptr<Normalizer>> make_precompiled(const Json& options, std::string_view where);

}  // namespace troupe::engine::tokenizer

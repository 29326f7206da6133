// The bytes that each token adds to a decoded text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace troupe::engine::tokenizer {

struct TokenBytes {
  /// By id, inside a text; "" for tokens that a decoded text does not show. A token may have part
  /// of a character.
  std::vector<std::string> bytes;
  /// Whether decoding drops a space at the beginning of a text.
  bool drops_first_space = false;
};

/// For `vocabulary` ids. Decodes every token once.
TokenBytes token_bytes(const Tokenizer& tokenizer, std::size_t vocabulary);

}  // namespace troupe::engine::tokenizer

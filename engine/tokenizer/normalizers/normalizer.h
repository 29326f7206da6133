// Normalizers of tokenizer.json change text before it is split (Hugging Face tokenizers,
// normalizers/).
#pragma once

#include <memory>
#include <string>

#include "engine/base/errors/error.h"

namespace troupe {
class Json;
}

namespace troupe::engine::tokenizer {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// `text` is valid UTF-8 before and after. Returns true if characters at its beginning were
  /// removed (Metaspace needs to know whether a text starts where the user's text starts). Throws
  /// Failure (Errc::bad_input) if the text becomes longer than `limit` bytes.
  virtual bool apply(std::string& text, std::size_t limit) const = 0;
};

/// nullptr for null. Errc::unsupported, by name, for other types.
Result<std::unique_ptr<Normalizer>> make_normalizer(const Json* normalizer, std::string_view where);

}  // namespace troupe::engine::tokenizer

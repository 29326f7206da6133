// Normalizers of tokenizer.json: what happens to text before it is split (Hugging Face tokenizers,
// normalizers/).
#pragma once

#include <memory>
#include <string>

#include "engine/base/error.h"

namespace troupe {
class Json;
}

namespace troupe::engine::tokenizer {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// `text` is valid UTF-8 before and after. True when characters at its beginning went (Metaspace
  /// asks whether a text starts where the user's does).
  virtual bool apply(std::string& text) const = 0;
};

/// nullptr for null. Errc::unsupported, by name, for a type that troupe does not have.
Result<std::unique_ptr<Normalizer>> make_normalizer(const Json* normalizer, std::string_view where);

Result<std::unique_ptr<Normalizer>> make_bert_normalizer(const Json& options,
                                                         std::string_view where);
Result<std::unique_ptr<Normalizer>> make_precompiled(const Json& options, std::string_view where);

/// NFC, NFD, NFKC or NFKD; nullptr for another name.
std::unique_ptr<Normalizer> make_unicode_normalizer(std::string_view form);

}  // namespace troupe::engine::tokenizer

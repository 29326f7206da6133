// Unicode normalization forms (UAX 15), through ICU.
#pragma once

#include "engine/tokenizer/normalizers/normalizer.h"

namespace troupe::engine::tokenizer {

/// NFC, NFD, NFKC or NFKD; nullptr for another name.
std::unique_ptr<Normalizer> make_unicode_normalizer(std::string_view form);

}  // namespace troupe::engine::tokenizer

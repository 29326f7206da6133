// Base64 of tokenizer files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::engine::tokenizer {

/// The bytes of base64 with padding (RFC 4648, section 4); nullopt for other text.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace troupe::engine::tokenizer

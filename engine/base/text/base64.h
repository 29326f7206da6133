// Base64 with padding (RFC 4648, section 4), by libsodium.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

std::string encode_base64(std::string_view bytes);
/// nullopt for other text.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace troupe

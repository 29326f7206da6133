// Base64 (RFC 4648, with padding), as tokenizer.json writes bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::engine::tokenizer {

/// Empty for what is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace troupe::engine::tokenizer

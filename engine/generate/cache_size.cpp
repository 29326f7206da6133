#include "engine/generate/cache_size.h"

#include <algorithm>

namespace troupe::engine::generate {

constexpr std::int64_t default_bytes = std::int64_t{1} << 30;

std::int64_t cached_token_bytes(const models::DecoderSpec& spec) {
  return std::int64_t{4} * spec.layers * 2 * spec.kv_heads * spec.head_size;
}

std::int64_t default_pages(const models::DecoderSpec& spec, int page_size, std::int64_t sequences,
                           std::int64_t longest) {
  const std::int64_t tokens =
      longest == 0 ? spec.max_positions : std::min(longest, spec.max_positions);
  const std::int64_t each = (tokens + page_size - 1) / page_size, least = longest == 0 ? 1 : each;
  const std::int64_t fitting =
      default_bytes / std::max<std::int64_t>(page_size * cached_token_bytes(spec), 1);
  return std::min(std::clamp(fitting, least, std::max(each * sequences, least)),
                  most_cached_tokens / page_size);
}

}  // namespace troupe::engine::generate

#include "engine/generate/kv_cache.h"

#include <algorithm>

namespace troupe::engine::generate {

static constexpr std::int64_t default_bytes = std::int64_t{1} << 30;

std::int64_t cached_token_bytes(const models::DecoderSpec& spec) {
  return std::int64_t{4} * spec.layers * 2 * spec.kv_heads * spec.head_size;
}

std::int64_t default_pages(const models::DecoderSpec& spec, int page_size, std::int64_t sequences,
                           std::int64_t longest) {
  const std::int64_t tokens =
      longest == 0 ? spec.max_positions : std::min(longest, spec.max_positions);
  const std::int64_t each = (tokens + page_size - 1) / page_size, minimum = longest == 0 ? 1 : each;
  const std::int64_t fitting =
      default_bytes / std::max<std::int64_t>(page_size * cached_token_bytes(spec), 1);
  return std::min(std::clamp(fitting, minimum, std::max(each * sequences, minimum)),
                  max_cached_tokens / page_size);
}

void copy_pages(ops::Device& device, nn::KvCache& cache, std::span<const PageCopy> copies) {
  const auto page = [&](Tensor& all, std::int32_t number) {
    return all.rows(std::int64_t{number} * cache.page_size,
                    (std::int64_t{number} + 1) * cache.page_size);
  };
  for (const PageCopy& copy : copies) {
    for (auto* side : {&cache.k, &cache.v}) {
      for (Tensor& layer : *side) {
        Tensor to = page(layer, copy.to);
        device.copy(page(layer, copy.from), to);
      }
    }
  }
}

}  // namespace troupe::engine::generate

// The KV cache: its size in bytes and pages, and copies of pages.
#pragma once

#include <cstdint>
#include <span>

#include "engine/generate/scheduler.h"
#include "engine/models/spec.h"
#include "engine/nn/forward_context.h"

namespace troupe::engine::generate {

/// Maximum tokens in a cache: they are counted in 32 bits.
inline constexpr std::int64_t max_cached_tokens = (std::int64_t{1} << 31) - 1;

/// Bytes of keys and values of one token, in all layers.
std::int64_t cached_token_bytes(const models::DecoderSpec& spec);

/// Default number of pages: enough for `sequences` sequences of `longest` tokens, limited to 1 GiB,
/// but at least for one such sequence. longest 0: max_positions of the model, without that
/// guarantee.
std::int64_t default_pages(const models::DecoderSpec& spec, int page_size, std::int64_t sequences,
                           std::int64_t longest);

/// Copies pages in all layers, in the order of `copies`.
void copy_pages(ops::Device& device, nn::KvCache& cache, std::span<const PageCopy> copies);

}  // namespace troupe::engine::generate

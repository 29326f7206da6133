// How large a cache of keys and values is where nobody says so.
#pragma once

#include <cstdint>
#include <span>

#include "engine/generate/scheduler.h"
#include "engine/models/spec.h"
#include "engine/nn/forward_context.h"

namespace troupe::engine::generate {

/// Tokens of a cache are counted in 32 bits.
inline constexpr std::int64_t most_cached_tokens = (std::int64_t{1} << 31) - 1;

/// Bytes of the keys and values of one token, in all layers.
std::int64_t cached_token_bytes(const models::DecoderSpec& spec);

/// Pages for so many sequences of `longest` tokens, at most 1 GiB of them, but always one such
/// sequence. longest 0: the model's positions, of which there may not be room for all.
std::int64_t default_pages(const models::DecoderSpec& spec, int page_size, std::int64_t sequences,
                           std::int64_t longest);

/// In all layers, in the order of `copies`.
void copy_pages(ops::Device& device, nn::KvCache& cache, std::span<const PageCopy> copies);

}  // namespace troupe::engine::generate

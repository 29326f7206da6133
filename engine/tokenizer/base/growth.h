// A bound on the text that the components of a tokenizer make of a text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace troupe::engine::tokenizer {

/// The most bytes that normalizers, pre-tokenizers or decoders may make of `bytes`. Real ones make
/// at most four times as much.
constexpr std::size_t growth_limit(std::size_t bytes) {
  constexpr std::size_t factor = 8, always = 64 << 10, most = 256 << 20;
  return bytes > most / factor ? most : std::min(factor * bytes + always, most);
}

/// Throws Failure (Errc::bad_input) if `bytes` exceeds `limit`; `who` is "normalizer".
void check_growth(std::size_t bytes, std::size_t limit, std::string_view who);

}  // namespace troupe::engine::tokenizer

// WeightChange: what happens to unfinished requests when the weights change between two tokens.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace troupe::engine::generate {

/// Unfinished samples continue after the tokens that they have (AReaL, Fu et al. 2025,
/// arXiv:2505.24298 sec. 4.1), or start again from their prompt, once, and continue afterwards.
enum class PartialSamples : std::uint8_t { proceed, restart };
constexpr std::array<std::string_view, 2> names_of(PartialSamples) {
  return {"continue", "restart"};
}

/// Keys and values of tokens that older weights computed: used further (PipelineRL, Piche et al.
/// 2025, arXiv:2509.19128), or recomputed by the new weights before the next token.
enum class CacheUse : std::uint8_t { keep, recompute };
constexpr std::array<std::string_view, 2> names_of(CacheUse) {
  return {"keep", "recompute"};
}

struct WeightChange {
  PartialSamples partial = PartialSamples::proceed;
  CacheUse cache = CacheUse::recompute;
};

}  // namespace troupe::engine::generate

// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3"). A number is a pure function of its key and counter: it does not depend on the
// order of work, threads, batches or restarts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace troupe {

/// The low and high 32 bits of a counter or key.
constexpr std::uint32_t low_word(std::uint64_t x) {
  return static_cast<std::uint32_t>(x);
}
constexpr std::uint32_t high_word(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}

/// The block of four 32-bit words for `counter` under `key`.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// The random stream of a tensor with this name (FNV-1a, 64 bits).
std::uint64_t stream_of(std::string_view name);

/// A uniform double in [0, 1) with 53 random bits, for position `position` of stream `stream` under
/// `seed`. Sampling uses stream = sample id, position = token position.
double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t position);

/// A uniform integer in [0, n), n >= 1, addressed in the same way.
std::uint64_t uniform_below(std::uint64_t n, std::uint64_t seed, std::uint64_t stream,
                            std::uint64_t position);

}  // namespace troupe

#include "launch/evaluation/python_random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "engine/base/errors/check.h"

namespace troupe::launch::evaluation {
namespace {

std::vector<std::uint32_t> words_of(std::uint64_t seed) {
  std::vector<std::uint32_t> out{static_cast<std::uint32_t>(seed)};
  if (seed >> 32 != 0) out.push_back(static_cast<std::uint32_t>(seed >> 32));
  return out;
}

std::vector<std::size_t> range(std::size_t n) {
  std::vector<std::size_t> out(n);
  std::iota(out.begin(), out.end(), std::size_t{0});
  return out;
}

}  // namespace

MersenneTwister::MersenneTwister(std::uint32_t seed) {
  state_[0] = seed;
  for (std::uint32_t i = 1; i < state_.size(); ++i)
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
}

MersenneTwister::MersenneTwister(const std::vector<std::uint32_t>& key)
    : MersenneTwister(19650218U) {
  check(!key.empty(), "MersenneTwister: an empty key");
  std::size_t i = 1;
  const auto mix = [&](std::uint32_t factor) {
    return state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * factor);
  };
  const auto advance = [&] {
    if (++i < state_.size()) return;
    state_[0] = state_.back();
    i = 1;
  };
  for (std::size_t k = 0; k < std::max(state_.size(), key.size()); ++k) {
    const std::size_t j = k % key.size();
    state_[i] = mix(1664525U) + key[j] + static_cast<std::uint32_t>(j);
    advance();
  }
  for (std::size_t k = 1; k < state_.size(); ++k) {
    state_[i] = mix(1566083941U) - static_cast<std::uint32_t>(i);
    advance();
  }
  state_[0] = 0x80000000U;
}

std::uint32_t MersenneTwister::next() {
  constexpr std::size_t shift = 397;
  if (at_ == state_.size()) {
    for (std::size_t i = 0; i < state_.size(); ++i) {
      const std::uint32_t y =
          (state_[i] & 0x80000000U) | (state_[(i + 1) % state_.size()] & 0x7FFFFFFFU);
      state_[i] =
          state_[(i + shift) % state_.size()] ^ (y >> 1) ^ ((y & 1U) != 0 ? 0x9908B0DFU : 0U);
    }
    at_ = 0;
  }
  std::uint32_t y = state_[at_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9D2C5680U;
  y ^= (y << 15) & 0xEFC60000U;
  return y ^ (y >> 18);
}

PythonRandom::PythonRandom(std::uint64_t seed) : twister_(words_of(seed)) {
}

double PythonRandom::uniform() {
  const double high = twister_.next() >> 5, low = twister_.next() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

// getrandbits(count), count from 1 to 64: the low word comes first.
std::uint64_t PythonRandom::bits(int count) {
  const std::uint64_t low = twister_.next();
  if (count <= 32) return low >> (32 - count);
  return low | (std::uint64_t{twister_.next() >> (64 - count)} << 32);
}

std::uint64_t PythonRandom::below(std::uint64_t n) {
  check(n >= 1, "PythonRandom: no number is below 0");
  const auto count = static_cast<int>(std::bit_width(n));
  std::uint64_t out = bits(count);
  while (out >= n) out = bits(count);
  return out;
}

std::vector<std::size_t> PythonRandom::sample(std::size_t n, std::size_t k) {
  check(k <= n, "PythonRandom: a sample larger than the population");
  std::size_t set_size = 21;  // of a small set without an empty one
  if (k > 5) {
    const double exponent = std::ceil(std::log(static_cast<double>(k) * 3) / std::log(4.0));
    set_size += static_cast<std::size_t>(std::pow(4.0, exponent));
  }
  std::vector<std::size_t> out;
  if (n <= set_size) {
    std::vector<std::size_t> pool = range(n);
    for (std::size_t i = 0; i < k; ++i) {
      const std::size_t j = below(n - i);
      out.push_back(std::exchange(pool[j], pool[n - i - 1]));
    }
    return out;
  }
  std::unordered_set<std::size_t> selected;
  while (out.size() < k) {
    std::size_t j = below(n);
    while (!selected.insert(j).second) j = below(n);
    out.push_back(j);
  }
  return out;
}

std::vector<std::size_t> PythonRandom::shuffled(std::size_t n) {
  std::vector<std::size_t> out = range(n);
  for (std::size_t i = n; i-- > 1;) std::swap(out[i], out[below(i + 1)]);
  return out;
}

std::vector<std::size_t> PythonRandom::choices(std::size_t n, std::size_t k) {
  std::vector<std::size_t> out(k);
  for (std::size_t& each : out) each = static_cast<std::size_t>(uniform() * static_cast<double>(n));
  return out;
}

std::vector<std::size_t> numpy_permutation(std::size_t n, std::uint32_t seed) {
  MersenneTwister twister(seed);
  std::vector<std::size_t> out = range(n);
  check(n <= 0xFFFFFFFFU, "numpy_permutation: more than 2^32 entries");
  for (std::size_t i = n; i-- > 1;) {
    // random_interval(): masked rejection.
    const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << std::bit_width(i)) - 1);
    std::uint32_t j = twister.next() & mask;
    while (j > i) j = twister.next() & mask;
    std::swap(out[i], out[j]);
  }
  return out;
}

}  // namespace troupe::launch::evaluation

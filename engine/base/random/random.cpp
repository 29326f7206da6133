#include "engine/base/random/random.h"

namespace troupe {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c,
                                    std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t multiply0 = 0xD2511F53, multiply1 = 0xCD9E8D57;
  constexpr std::uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = multiply0 * c[0], p1 = multiply1 * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += weyl0;
    key[1] += weyl1;
  }
  return c;
}

namespace {

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) {
  const auto words =
      philox({low_word(position), high_word(position), low_word(stream), high_word(stream)},
             {low_word(seed), high_word(seed)});
  return (std::uint64_t{words[1]} << 32) | words[0];
}

}  // namespace

std::uint64_t stream_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) {
  return static_cast<double>(random_bits(seed, stream, position) >> 11) * 0x1.0p-53;
}

std::uint64_t uniform_below(std::uint64_t n, std::uint64_t seed, std::uint64_t stream,
                            std::uint64_t position) {
  // multiply-shift; the bias is below n / 2^64
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{random_bits(seed, stream, position)} * n) >> 64);
}

}  // namespace troupe

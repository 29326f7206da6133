#include "engine/base/random/secret.h"

#include <sodium/core.h>
#include <sodium/crypto_shorthash_siphash24.h>
#include <sodium/randombytes.h>
#include <sodium/utils.h>

#include <cstring>

#include "engine/base/errors/check.h"

namespace troupe {
namespace {

void random_bytes(std::span<unsigned char> out) {
  check(sodium_init() >= 0, "libsodium cannot be initialized");
  ::randombytes_buf(out.data(), out.size());
}

}  // namespace

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  random_bytes(bytes);
  std::array<char, 2 * bytes.size() + 1> text{};
  ::sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  return text.data();
}

bool equal_secrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

KeyedHash::KeyedHash() : key_{} {
  static_assert(crypto_shorthash_siphash24_KEYBYTES == sizeof(key_));
  random_bytes(key_);
}

std::uint64_t KeyedHash::operator()(std::span<const std::byte> bytes) const {
  std::array<unsigned char, crypto_shorthash_siphash24_BYTES> out{};
  ::crypto_shorthash_siphash24(out.data(), reinterpret_cast<const unsigned char*>(bytes.data()),
                               bytes.size(), key_.data());
  std::uint64_t value = 0;
  std::memcpy(&value, out.data(), sizeof(value));
  return value;
}

}  // namespace troupe

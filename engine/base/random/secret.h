// Secrets of this process: random tokens, and a hash that only this process can compute.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// 128 random bits of the system as 32 hexadecimal digits.
std::string random_token();

/// Compares in a time that does not depend on the position of the first difference.
bool equal_secrets(std::string_view a, std::string_view b);

/// SipHash-2-4 (Aumasson and Bernstein 2012) with a random key: nobody else can find a value that
/// belongs to given bytes, or two inputs with the same value.
class KeyedHash {
 public:
  KeyedHash();
  std::uint64_t operator()(std::span<const std::byte> bytes) const;

 private:
  std::array<unsigned char, 16> key_;
};

}  // namespace troupe

// SHA-256 (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/base/error.h"

namespace troupe {

class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);
  /// The digest of all bytes as 64 hexadecimal digits. The object cannot be used afterwards.
  std::string finish();

 private:
  void block(const std::byte* bytes);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> buffer_{};
  std::uint64_t length_ = 0;  // bytes so far
};

/// The digest of a regular file, which is read in parts. Errc::not_found, io.
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace troupe

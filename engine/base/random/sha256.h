// SHA-256 (FIPS 180-4), computed by libsodium.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "engine/base/errors/error.h"

namespace troupe {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  /// The digest of all bytes as 64 hexadecimal digits. The object cannot be used afterwards.
  std::string finish();

 private:
  struct State;  // libsodium's
  std::unique_ptr<State> state_;
};

/// The digest of a regular file, which is read in parts. Errc::not_found, io.
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace troupe

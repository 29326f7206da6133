#include "engine/base/random/sha256.h"

#include <sodium/crypto_hash_sha256.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "engine/base/text/text.h"

namespace troupe {

struct Sha256::State {
  crypto_hash_sha256_state libsodium;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  crypto_hash_sha256_init(&state_->libsodium);
}
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  crypto_hash_sha256_update(&state_->libsodium,
                            reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::string Sha256::finish() {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256_final(&state_->libsodium, digest.data());
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : digest) {
    out.push_back(digits[byte >> 4]);
    out.push_back(digits[byte & 15]);
  }
  return out;
}

Result<std::string> sha256_of_file(const std::string& path) {
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (!std::filesystem::exists(status))
    return fail(Errc::not_found, cat(path, ": cannot open for reading: no such file"));
  if (!std::filesystem::is_regular_file(status))
    return fail(Errc::io, cat(path, ": expected a regular file"));
  std::ifstream file(path, std::ios::binary);
  std::vector<char> part(std::size_t{1} << 20);
  Sha256 hash;
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0)
    hash.update(std::as_bytes(std::span(part).first(static_cast<std::size_t>(file.gcount()))));
  if (!file.eof()) return fail(Errc::io, cat(path, ": cannot read: ", std::strerror(errno)));
  return hash.finish();
}

}  // namespace troupe

#include "engine/data/loader/fingerprint.h"

#include <xxhash.h>

#include <cstdio>

#include "engine/base/file.h"
#include "engine/base/text.h"

namespace troupe::engine::data {
namespace {

constexpr std::size_t sampled_blocks = 64, block_size = 1u << 20;

std::string hexadecimal(XXH128_hash_t hash) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

}  // namespace

Result<FileFingerprint> fingerprint(const std::string& path) {
  auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  const auto bytes = file->bytes();
  return FileFingerprint{path, bytes.size(), hexadecimal(XXH3_128bits(bytes.data(), bytes.size()))};
}

Result<FileFingerprint> sampled_fingerprint(const std::string& path) {
  auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  const auto bytes = file->bytes();
  if (bytes.size() <= sampled_blocks * block_size) return fingerprint(path);
  std::string all;
  for (std::size_t i = 0; i < sampled_blocks; ++i) {
    const auto begin = (bytes.size() - block_size) / (sampled_blocks - 1) * i;
    const auto* from = bytes.data() + (i + 1 == sampled_blocks ? bytes.size() - block_size : begin);
    const auto hash = XXH3_128bits(from, block_size);
    all += hexadecimal(hash);
  }
  return FileFingerprint{path, bytes.size(),
                         cat("sampled-", hexadecimal(XXH3_128bits(all.data(), all.size())))};
}

}  // namespace troupe::engine::data

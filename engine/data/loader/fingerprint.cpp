#include <xxhash.h>

#include <cstdio>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/data/loader/dataset.h"

namespace troupe::engine::data {
namespace {

constexpr std::size_t pieces = 64, piece_bytes = 1u << 20;

std::string hexadecimal(XXH128_hash_t hash) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

}  // namespace

Result<FilePrint> fingerprint(const std::string& path) {
  auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  const auto bytes = file->bytes();
  return FilePrint{path, bytes.size(), hexadecimal(XXH3_128bits(bytes.data(), bytes.size()))};
}

Result<FilePrint> sampled_fingerprint(const std::string& path) {
  auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  const auto bytes = file->bytes();
  if (bytes.size() <= pieces * piece_bytes) return fingerprint(path);
  std::string all;
  for (std::size_t i = 0; i < pieces; ++i) {
    const auto begin = (bytes.size() - piece_bytes) / (pieces - 1) * i;
    const auto* from = bytes.data() + (i + 1 == pieces ? bytes.size() - piece_bytes : begin);
    const auto hash = XXH3_128bits(from, piece_bytes);
    all += hexadecimal(hash);
  }
  return FilePrint{path, bytes.size(),
                   cat("sampled-", hexadecimal(XXH3_128bits(all.data(), all.size())))};
}

}  // namespace troupe::engine::data

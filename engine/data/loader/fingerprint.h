// Fingerprints of data files: a checkpoint records them, and a resumed run compares them.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/error.h"

namespace troupe::engine::data {

/// The identity of a data file at the time it was read.
struct FileFingerprint {
  std::string path;
  std::uint64_t bytes = 0;
  /// XXH3-128 of the content, hexadecimal; prefixed with "sampled-" if only parts were hashed.
  std::string xxh3;
  bool operator==(const FileFingerprint&) const = default;
};

/// Errc::not_found, io.
Result<FileFingerprint> fingerprint(const std::string& path);
/// Hashes 64 blocks of 1 MiB, evenly spaced, including the first and the last; files of at most
/// 64 MiB are hashed whole. Errc::not_found, io.
Result<FileFingerprint> sampled_fingerprint(const std::string& path);

}  // namespace troupe::engine::data

// The manifest of a training checkpoint: step, and size and XXH3-128 checksum of every other file.
// Written last; a folder without a manifest that holds is no checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace troupe::engine::checkpoint {

inline constexpr std::string_view manifest_file = "training/manifest.json";

struct Manifest {
  struct File {
    std::string path;  ///< "training/state.json", relative to the checkpoint
    std::uint64_t bytes = 0;
    std::string
        xxh3_128;  ///< 32 hexadecimal digits, canonical (big-endian) form as xxhsum prints it
  };
  std::int64_t step = 0;
  std::vector<File> files;  ///< sorted by path
};

/// The checksum of a regular file, and its size.
Result<Manifest::File> measure_file(const std::string& path);

/// Measures every file of a checkpoint folder but the manifest.
Result<Manifest> measure_checkpoint(const std::string& folder, std::int64_t step);
std::string to_text(const Manifest& manifest);

/// Reads the manifest of `folder` and compares every file with it. Any byte of any file that
/// differs, a missing file, and weights that the manifest does not know are Errc::corrupt, naming
/// file, expected and found. Errc::not_found: no manifest.
Result<Manifest> verify_checkpoint(const std::string& folder);

}  // namespace troupe::engine::checkpoint

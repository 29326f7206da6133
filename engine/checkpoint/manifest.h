// The manifest of a training checkpoint: step, and size and XXH3-128 checksum of every other file.
// It is written last; a folder without a valid manifest is not a checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::engine::checkpoint {

inline constexpr std::string_view manifest_file = "training/manifest.json";

struct Manifest {
  struct File {
    std::string path;  ///< "training/state.json", relative to the checkpoint
    std::uint64_t bytes = 0;
    std::string xxh3_128;  ///< 32 hexadecimal digits, canonical (big-endian), as xxhsum prints it
  };
  std::int64_t step = 0;
  std::vector<File> files;  ///< sorted by path
};

/// Checksum and size of a regular file.
Result<Manifest::File> measure_file(const std::string& path);

/// Computes the manifest of a checkpoint folder.
Result<Manifest> measure_checkpoint(const std::string& folder, std::int64_t step);
std::string to_text(const Manifest& manifest);

/// Reads the manifest of `folder` and verifies every file. Errc::corrupt, naming file, expected and
/// found, for any byte that differs, a missing file, and weights that the manifest does not list.
/// Errc::not_found: no manifest.
Result<Manifest> verify_checkpoint(const std::string& folder);

/// Verifies the model of `folder`, whose training state is not read: the files that its manifest
/// lists outside training/, and that no other weights lie there. A folder without a manifest is no
/// checkpoint of troupe and passes. `measure`: measure_file, or one that remembers. Errc::corrupt,
/// which says how to use a folder that was changed on purpose.
Result<> verify_model_files(
    const std::string& folder,
    const std::function<Result<Manifest::File>(const std::string&)>& measure = measure_file);

/// XXH3 (64 bits) of the values' bytes, for tensors that are sent between processes.
std::uint64_t checksum(std::span<const float> values);

}  // namespace troupe::engine::checkpoint

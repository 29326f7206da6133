// Whether a checkpoint fits on its file system, before it is written.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/errors/error.h"

namespace troupe::engine::checkpoint {

/// Bytes that an ordinary user can still write to the file system of `directory`; the largest
/// number if the system does not tell.
std::uint64_t free_bytes(const std::string& directory);

/// Errc::io if `free` bytes are fewer than a checkpoint needs; the message has both numbers.
Result<> check_space(const std::string& directory, std::uint64_t needed, std::uint64_t free);

/// "12 MiB", rounded up.
std::string mebibytes(std::uint64_t bytes);

}  // namespace troupe::engine::checkpoint

// Reading and writing files of any size in parts, with little memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "engine/base/errors/error.h"

namespace troupe {

/// Visits the bytes of a regular file in order, at most 1 MiB at a time. Returns their number.
/// Errc::not_found, io.
Result<std::uint64_t> visit_file(const std::string& path,
                                 const std::function<void(std::span<const std::byte>)>& visit);

/// Writes all bytes at an offset of an open file, whose position stays. Returns 0, or errno;
/// `bytes` are then those that were not written.
int write_at(int file, std::span<const std::byte>& bytes, std::uint64_t offset);

}  // namespace troupe

// The memory of mapped files.
#pragma once

#include <cstddef>
#include <span>

namespace troupe {

/// Gives back the memory of the whole pages in `bytes` of a mapped file, which are read from the
/// file when they are used again. Without it a process that reads a large file once holds all of
/// it.
void release_pages(std::span<const std::byte> bytes);

}  // namespace troupe

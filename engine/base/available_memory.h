// Memory that is left for this process.
#pragma once

#include <cstdint>

namespace troupe {

/// Bytes that can be used without swapping (MemAvailable of /proc/meminfo), or what the limit of
/// the control group (version 2) leaves if that is less; 0: unknown.
std::uint64_t memory_available();

}  // namespace troupe

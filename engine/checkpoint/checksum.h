// Checksums of tensors that are sent between processes.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::engine::checkpoint {

/// XXH3 (64 bits) of the values' bytes.
std::uint64_t checksum(std::span<const float> values);

}  // namespace troupe::engine::checkpoint

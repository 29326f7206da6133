#include "engine/checkpoint/checksum.h"

#include <xxhash.h>

namespace troupe::engine::checkpoint {

std::uint64_t checksum(std::span<const float> values) {
  return XXH3_64bits(values.data(), values.size_bytes());
}

}  // namespace troupe::engine::checkpoint

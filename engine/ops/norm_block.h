// The order of summation of Device::sum_of_squares() on the CPU device.
#pragma once

#include <cstdint>

namespace troupe::engine::ops {

/// Values whose squares are added first; then the sums of the blocks are added in their order.
/// Adding the blocks of a tensor one by one gives the same bits (engine/nn/arena_shards.h).
inline constexpr std::int64_t sum_of_squares_block = 16384;

}  // namespace troupe::engine::ops

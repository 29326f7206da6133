// Blocks: arithmetic of spans that consist of one block per rank, and the sum of such blocks in the
// order of the ranks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

/// Sum of the lengths, and offset of a rank's block.
std::size_t total(Counts counts);
std::size_t block_begin(Counts counts, int rank);

/// Checks the arguments of the non-blocking collectives of a group of `size` ranks at `rank`.
/// Throws Bug, with the name of the operation.
void check_all_gather(std::span<const std::byte> mine, std::span<const std::byte> all,
                      Counts counts, int rank, int size, std::string_view what);
void check_all_to_all(std::span<const std::byte> mine, Counts sent,
                      std::span<const std::byte> theirs, Counts received, int size,
                      std::string_view what);
void check_reduce_scatter(std::span<const float> values, Counts counts, std::span<const float> part,
                          int rank, int size, std::string_view what);

/// into[i] = ((blocks[0][i] + blocks[1][i]) + blocks[2][i]) + ... `into` may be one of the blocks.
void sum_blocks(std::span<const float* const> blocks, std::span<float> into);

}  // namespace troupe::engine::parallel

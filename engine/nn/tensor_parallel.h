// What the modules of a tensor-parallel group share: adding up their parts, and finding rows in a
// table of which each has a part.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/nn/parameters.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

/// x becomes the sum of the ranks' x, the same bits on all of them. Without a group nothing
/// happens.
void sum_over(parallel::Communicator* group, ops::Device& device, Tensor& x, std::string_view what);

/// Ids of the whole vocabulary as rows of this rank's part of `table`: `elsewhere` for those of
/// other parts; a negative id stays as it is. The result lies in `room`, or is `ids` itself where
/// the table is whole. An id beyond the vocabulary is a Bug.
std::span<const std::int32_t> own_rows(const Parameter& table, std::span<const std::int32_t> ids,
                                       std::int32_t elsewhere, std::vector<std::int32_t>& room);

}  // namespace troupe::engine::nn

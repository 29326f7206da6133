// Operations of a tensor-parallel group that several modules use: summing partial results, and
// looking up rows in a table that is split over the ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/nn/parameters.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

/// Replaces x by its sum over the ranks, the same bits on all of them. `group` nullptr: no effect.
/// `what` names the tensor in errors.
void all_reduce(parallel::Communicator* group, ops::Device& device, Tensor& x,
                std::string_view what);

/// Converts ids of the whole vocabulary to rows of this rank's part of `table`: `elsewhere` for ids
/// of other parts; negative ids stay. The result lies in `storage`, or is `ids` itself where the
/// table is whole. An id beyond the vocabulary is a Bug.
std::span<const std::int32_t> local_rows(const Parameter& table, std::span<const std::int32_t> ids,
                                         std::int32_t elsewhere,
                                         std::vector<std::int32_t>& storage);

}  // namespace troupe::engine::nn

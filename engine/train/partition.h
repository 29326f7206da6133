// Partitioning a batch over the replicas of a data-parallel group.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/data/experience.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::train {

/// The sequences of one rank, in rising order, in whole groups (Experience::sequences_per_group).
using Partition = std::vector<std::int32_t>;

/// Partitions with about equally many tokens: the longest group first, each to the rank with the
/// fewest tokens so far. Every sequence is in exactly one partition; a partition may be empty. The
/// result is the same on every rank.
std::vector<Partition> partition_by_tokens(const data::Experience& batch, int ranks);

/// Gathers a [T] column of the batch from the columns that the ranks have for their partitions.
/// Collective; `what` names the operation in errors.
std::vector<float> gather_column(parallel::Communicator& dp, const std::vector<float>& mine,
                                 const data::Experience& batch,
                                 const std::vector<Partition>& partitions, std::string_view what);

/// Values of a [T] column at the tokens of some sequences, concatenated.
std::vector<float> select_column(const std::vector<float>& column, const data::Experience& batch,
                                 std::span<const std::int32_t> sequences);

}  // namespace troupe::engine::train

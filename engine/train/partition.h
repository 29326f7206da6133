// How the replicas of a data-parallel group share a batch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/data/experience.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::train {

/// The sequences of one rank, in rising order: whole units.
using Share = std::vector<std::int32_t>;

/// Shares of about equally many tokens: the longest unit first, each to the rank with the fewest
/// tokens so far. Every sequence is in one share; a share may be empty. The same on every rank.
std::vector<Share> share_out(const data::Experience& batch, int ranks);

/// A [T] column of the batch from what each rank has for the tokens of its share. Collective;
/// `what` names the wait.
std::vector<float> gather_column(parallel::Communicator& dp, const std::vector<float>& mine,
                                 const data::Experience& batch, const std::vector<Share>& shares,
                                 std::string_view what);

/// What a [T] column holds at the tokens of some sequences, one after the other.
std::vector<float> select_column(const std::vector<float>& column, const data::Experience& batch,
                                 std::span<const std::int32_t> sequences);

}  // namespace troupe::engine::train
